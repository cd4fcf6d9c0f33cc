// What `epocast calibrate` writes: whole files or none, readable reports and plots, network calibrations that read
// back.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "costmodels/network_calibration.hpp"
#include "experiments/calibrate/plot.hpp"
#include "experiments/calibrate/report.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::calibrate_test {

using epocast::testing::message;
namespace fs = std::filesystem;

namespace {

std::vector<CollectiveTiming> ring_points() {
  std::vector<CollectiveTiming> points;
  for (int p : {2, 4, 8})
    for (double bytes : {1e5, 1e6, 1e7, 1e8})
      points.push_back({CollectiveOp::all_reduce, "a \"quoted\" library", p, bytes,
                        Seconds(2 * (p - 1) * 5e-6 + 2.0 * (p - 1) / p * bytes * 1e-10), 0});
  return points;
}

}  // namespace

TEST_CASE("a network calibration reads back as it was written") {
  NetworkCalibration before{"d", "i", "s", "", "sure", fit_networks(ring_points(), 1e-11)};
  const std::string text = to_yaml(before);
  const NetworkCalibration after = read_network_calibration(ConfigNode::load_text(text, "n.yaml"));
  const NetworkFit* fit = after.find(CollectiveOp::all_reduce);
  REQUIRE(fit != nullptr);
  CHECK(fit->library == "a \"quoted\" library");
  CHECK(after.find(CollectiveOp::broadcast) == nullptr);
  for (int p : {2, 3, 8, 16}) CHECK(fit->time(p, 3e6).value == Approx(before.fits[0].time(p, 3e6).value).epsilon(1e-4));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"operation: all_reduce", "operation: all_produce"},
                                                        {"knots: [", "knots: [1e14, "},
                                                        {"alpha: [", "alpha: [1, "},
                                                        {"gamma: ", "gamma: -"},
                                                        {"      2: [", "      1: ["}}) {
    std::string wrong = text;
    REQUIRE(wrong.find(from) != std::string::npos);
    wrong.replace(wrong.find(from), from.size(), to);
    INFO(to);
    CHECK_THAT(message([&] { read_network_calibration(ConfigNode::load_text(wrong, "n.yaml")); }),
               Catch::StartsWith("n.yaml:"));
  }
}

TEST_CASE("reports name every fit, and plots hold every point") {
  std::vector<KernelTiming> points;
  for (std::int64_t n : {64, 128, 256, 512})
    points.push_back(
        {{GemmShape{1024, n, 1024}, KernelPass::forward}, Seconds(1e-5 + 2e-7 * static_cast<double>(n)), 0});
  const DeviceRates rates{FlopPerSecond(1e13), BytesPerSecond(1e12), 10};
  const std::vector<TestedFit> fits = fit_all(points, rates);
  std::ostringstream report;
  print_report(report, fits);
  CHECK_THAT(report.str(), Catch::Contains("gemm") && Catch::Contains("95 %") && Catch::Contains("worst residuals") &&
                               Catch::Contains("warning: gemm has only 4 shapes"));
  const std::string svg = plot_fits("<a & b>", fits);
  CHECK_THAT(svg, Catch::StartsWith("<svg") && Catch::EndsWith("</svg>\n") && Catch::Contains("&lt;a &amp; b&gt;"));
  std::size_t circles = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  CHECK(circles == points.size() + 1);  // and one in the legend

  const auto network = fit_networks(ring_points(), 0);
  std::ostringstream network_report;
  print_report(network_report, network);
  CHECK_THAT(network_report.str(),
             Catch::Contains("alpha") && Catch::Contains("beta at") && Catch::Contains("8 ranks"));
  CHECK_THAT(plot_fits("t", network, ring_points()), Catch::EndsWith("</svg>\n"));
}

TEST_CASE("files appear whole or not at all") {
  const testing::TemporaryFolder files;
  const fs::path folder = files.path();
  write_file(folder / "a", "text");
  std::ifstream in(folder / "a");
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "text");
  CHECK_THAT(message([&] { write_file(folder / "no" / "such", "text"); }), Catch::Contains("cannot be written"));
  fs::create_directory(folder / "taken");
  CHECK_THAT(message([&] { write_file(folder / "taken", "text"); }), Catch::Contains("cannot be written"));
  // What is still in the buffer fails only when the file is closed.
  CHECK_THAT(message([&] { write_file("/dev/full", "text"); }), Catch::Contains("No space left"));
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 2);  // no partial files
}

}  // namespace epocast::calibrate_test
