// Pictures of a column over a sweep axis.
#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

#include "experiments/line_plot.hpp"
#include "sim/error.hpp"

namespace epocast::line_plot_test {

namespace {

ScenarioResult result(const std::string& workers, const std::string& strategy, double throughput) {
  ScenarioResult out;
  out.study = "s";
  out.axes = {{"strategy", strategy}, {"workers", workers}};
  out.samples_per_s = throughput;
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a line for each strategy over the numbers of workers", "[line_plot]") {
  const std::vector<ScenarioResult> results{result("1", "a", 10), result("1", "b<c", 20), result("3", "a", 30),
                                            result("3", "b<c", 40), result("2", "a", 20)};
  const std::string svg = line_plot_svg(results, "samples_per_s");
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<circle") == 5);
  CHECK(count(svg, "stroke-width=\"1.5\"") == 2);
  CHECK(svg.find(">b&lt;c<") != std::string::npos);
  CHECK(svg.find(">workers<") != std::string::npos);
  // The picture is 560 wide from 80 and 340 high from 40: worker 1 to 3, and 0 to 40 samples/s in steps of 10. Line a:
  // 10 at 1, 20 at 2, 30 at 3, whatever the order of the scenarios.
  CHECK(svg.find("M80.0 295.0 L360.0 210.0 L640.0 125.0") != std::string::npos);
}

TEST_CASE("scenarios that failed, and values that are missing, are left out", "[line_plot]") {
  std::vector<ScenarioResult> results{result("1", "a", 10), result("2", "a", 20), result("4", "a", 30)};
  results[2].error = "out of memory";
  CHECK(count(line_plot_svg(results, "samples_per_s"), "<circle") == 2);
  CHECK_THROWS_WITH(line_plot_svg(results, "mean_staleness"), Catch::Contains("no result has a number"));
}

TEST_CASE("what cannot be plotted", "[line_plot]") {
  CHECK_THROWS_WITH(line_plot_svg({result("1", "a", 10), result("1", "b", 10)}, "samples_per_s"),
                    Catch::Contains("needs a sweep axis of at least two numbers"));
  CHECK_THROWS_WITH(check_plot_column("sample_per_s"), Catch::Contains("did you mean 'samples_per_s'?"));
  CHECK_NOTHROW(check_plot_column("mean_staleness"));
  ScenarioResult failed = result("1", "a", 0);
  failed.error = "no";
  CHECK_THROWS_WITH(line_plot_svg({failed}, "samples_per_s"), Catch::Contains("no scenario has a result"));
}

TEST_CASE("an axis whose values span decades is logarithmic, and labelled by its values", "[line_plot]") {
  std::vector<ScenarioResult> results;
  for (int workers = 1; workers <= 8192; workers *= 2)
    results.push_back(result(std::to_string(workers), "a", 100.0 * workers));
  const std::string svg = line_plot_svg(results, "samples_per_s");
  // The picture is 560 wide from 80: 1 is at 80, and each of the 13 doublings takes 560 / 13 = 43.08 pixels. 100 to
  // 819,200 samples/s lie between the powers 100 and 1,000,000, which are 340 pixels apart: 819,200 is at
  // 40 + 340 (1 - log(8192) / log(10^4)) = 47.36.
  CHECK(svg.find("M80.0 380.0 L123.1 354.4 L") != std::string::npos);
  CHECK(svg.find(" L640.0 47.4\"") != std::string::npos);
  for (const char* label : {">1<", ">64<", ">8192<", ">100<", ">1e+06<"}) {
    CAPTURE(label);
    CHECK(svg.find(label) != std::string::npos);
  }
}

TEST_CASE("legends fit into the picture, and lines of the same colour have other dashes", "[line_plot]") {
  std::vector<ScenarioResult> results;
  const std::string longest(120, 'n');
  for (int s = 0; s < 17; ++s)
    for (const char* workers : {"1", "2"})
      results.push_back(result(workers, s == 16 ? longest : "strategy " + std::to_string(s), 10 + s));
  const std::string svg = line_plot_svg(results, "samples_per_s");
  // Narrow letters are half as wide as the font is high: at 13 pixels, 120 of them need 780.
  CHECK(std::stod(svg.substr(svg.find("width=\"") + 7)) > 80 + 34 + 780);
  std::set<std::string> looks;  // colour and dashes of each line
  for (std::size_t at = svg.find("stroke-width=\"1.5\""); at != std::string::npos;
       at = svg.find("stroke-width=\"1.5\"", at + 1))
    looks.insert(svg.substr(svg.rfind("stroke=", at), svg.find("/>", at) - svg.rfind("stroke=", at)));
  CHECK(looks.size() == 17);
}

}  // namespace epocast::line_plot_test
