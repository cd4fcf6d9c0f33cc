// Pictures of a column over a sweep axis.
#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

#include "experiments/line_plot.hpp"
#include "experiments/svg.hpp"
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
  CHECK(count(svg, "<circle") == 5 + 2);               // points, and each line's mark in the legend
  CHECK(count(svg, "stroke-width=\"1.5\"") == 2 + 2);  // likewise
  CHECK(svg.find(">b&lt;c<") != std::string::npos);
  CHECK(svg.find(">workers<") != std::string::npos);
  // The picture is 560 wide from 80 and 340 high from 40: worker 1 to 3, and 0 to 40 samples/s in steps of 10. Line a:
  // 10 at 1, 20 at 2, 30 at 3, whatever the order of the scenarios.
  CHECK(svg.find("M80.0 295.0 L360.0 210.0 L640.0 125.0") != std::string::npos);
}

TEST_CASE("scenarios that failed, and values that are missing, are left out", "[line_plot]") {
  std::vector<ScenarioResult> results{result("1", "a", 10), result("2", "a", 20), result("4", "a", 30)};
  results[2].error = "out of memory";
  CHECK(count(line_plot_svg(results, "samples_per_s"), "<circle") == 2 + 1);
  CHECK_THROWS_WITH(line_plot_svg(results, "mean_staleness"), Catch::Contains("no result has a number"));
}

TEST_CASE("what cannot be plotted", "[line_plot]") {
  CHECK_THROWS_WITH(line_plot_svg({result("1", "a", 10), result("1", "b", 10)}, "samples_per_s"),
                    Catch::Contains("needs a sweep axis of at least two numbers"));
  const PlotAxes one{{"strategy", "a"}, {"workers", "1"}}, two{{"strategy", "a"}, {"workers", "2"}};
  CHECK_THROWS_WITH(check_plot({one, two}, "sample_per_s"), Catch::Contains("did you mean 'samples_per_s'?"));
  CHECK_THROWS_WITH(check_plot({one, two}, "limited_by"), Catch::Contains("column 'limited_by' holds no numbers"));
  CHECK_THROWS_WITH(check_plot({one, two}, "fits_memory"), Catch::Contains("holds no numbers"));
  CHECK_THROWS_WITH(check_plot({one, one}, "samples_per_s"), Catch::Contains("needs a sweep axis of at least two"));
  CHECK_THROWS_WITH(check_plot({{}}, "samples_per_s"), Catch::Contains("needs a sweep axis of at least two"));
  CHECK_NOTHROW(check_plot({one, two}, "mean_staleness"));
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
  // Colour and dashes of each line; that of the legend looks the same.
  std::set<std::string> looks;
  for (std::size_t at = svg.find("stroke-width=\"1.5\""); at != std::string::npos;
       at = svg.find("stroke-width=\"1.5\"", at + 1))
    looks.insert(svg.substr(svg.rfind("stroke=", at), svg.find("/>", at) - svg.rfind("stroke=", at)));
  CHECK(looks.size() == 17);
}

TEST_CASE("legends leave out what all lines share", "[line_plot]") {
  std::vector<ScenarioResult> results;
  for (const char* workers : {"1", "2"}) {
    results.push_back(result(workers, "server(mode=sync place=even map={a: 1, b: 2})", 1));
    results.push_back(result(workers, "server(mode=late bound=2 place=even map={a: 1, b: 2})", 2));
    results.push_back(result(workers, "other(place=even map={a: 1, b: 2})", 3));
  }
  const std::string svg = line_plot_svg(results, "samples_per_s");
  for (const char* name : {">server(mode=sync)<", ">server(mode=late bound=2)<", ">other<"}) {
    CAPTURE(name);
    CHECK(svg.find(name) != std::string::npos);
  }
  CHECK(svg.find("place=even") == std::string::npos);
  // A line alone keeps all of its name.
  CHECK(line_plot_svg({results[0], results[3]}, "samples_per_s").find("place=even") != std::string::npos);
}

TEST_CASE("lines that coincide have marks of different shapes", "[line_plot]") {
  std::vector<ScenarioResult> results;
  for (const char* strategy : {"a", "b", "c", "d"})
    for (const char* workers : {"1", "2"}) results.push_back(result(workers, strategy, 10));
  const std::string svg = line_plot_svg(results, "samples_per_s");
  CHECK(count(svg, "r=\"3\"") == 3);       // two points and the legend
  CHECK(count(svg, "r=\"5\"") == 3);       // rings
  CHECK(count(svg, " h8 v8 h-8 z") == 3);  // squares
  CHECK(count(svg, " l7 7 l-7 7") == 3);   // diamonds
}

TEST_CASE("a step function has no slanted lines, and a linear axis begins at zero", "[line_plot]") {
  const PlotLine memory{.name = "device 0", .points = {{0, 1}, {1, 100}, {4, 50}}, .steps = true};
  // 560 pixels from 80 for 4 ms; 340 below 40 for 100: 1 is at 376.6, 50 at 210.
  CHECK(lines_svg({memory}, "time [ms]", "memory [GB]", false, PlotScales::linear)
            .find("M80.0 376.6 H220.0 V40.0 H640.0 V210.0\"") != std::string::npos);
  // By its values, the vertical axis would be logarithmic.
  CHECK(lines_svg({memory}, "time [ms]", "memory [GB]", false).find("M80.0 376.6") == std::string::npos);
}

TEST_CASE("pictures are SVG", "[line_plot]") {
  for (const char* good : {"", "a.svg", "a.SVG", "b.c/a", "/dev/stdout"}) CHECK_NOTHROW(check_svg_name("--plot", good));
  CHECK_THROWS_WITH(check_svg_name("--plot", "v.png"),
                    "--plot: pictures are SVG, not .png; name a file that ends in .svg, and convert that");
}

}  // namespace epocast::line_plot_test
