// Steps of measured training runs, predicted from the other steps of their series by `epocast calibrate steps`.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "costmodels/csv_table.hpp"
#include "experiments/calibrate/step_ruler.hpp"
#include "experiments/interval.hpp"
#include "sim/quantile.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/mean.hpp"

namespace epocast::calibrate_series_test {

using namespace epocast::test;
using testing::mean;

namespace {

constexpr const char* kUnit = "samples_per_s";

/// Runs of one network on one system with one program, at any batch size and number of workers.
struct Series {
  std::string study;
  bool opaque = false;                                       ///< nothing is known of the network's kernels
  std::map<std::pair<int, int>, double> samples_per_second;  ///< by workers and batch

  int fewest_workers() const { return samples_per_second.begin()->first.first; }
  std::string csv() const {
    std::string out = std::string("workers,batch.per_worker,") + kUnit + "\n";
    for (const auto& [run, rate] : samples_per_second) out += fmt::format("{},{},{}\n", run.first, run.second, rate);
    return out;
  }
  /// Of an opaque network the steps of the fewest workers say how long it computes.
  std::string text() const {
    if (!opaque) return study;
    std::string times;
    for (const auto& [run, rate] : samples_per_second)
      if (run.first == fewest_workers())
        times += fmt::format("{}{{batch: {}, time: {} s}}", times.empty() ? "" : ", ", run.second,
                             run.first * run.second / rate);
    return study + "compute: {step_time: [" + times + "]}\n";
  }
};

/// The measured runs in one node and across nodes by series: four steps and more, by name without the batch size.
std::map<std::string, Series> measured_series() {
  std::map<std::string, Series> all;
  for (const char* const file : {"one_node.csv", "across_nodes.csv"})
    for (const auto table = CsvTable::load(std::filesystem::path(EPOCAST_SOURCE_DIR) / "experiments" / "reproduce" /
                                           "measured_runs" / file);
         const CsvRow& row : table.rows()) {
      const std::string name = std::regex_replace(row.text("series"), std::regex("_b[0-9]+"), "");
      std::string study = "study: measured\ndataset: {samples: 100000000}\n";
      for (const char* const key : {"platform", "model", "precision", "strategy", "stack"})
        study += std::string(key) + ": " + row.text(key) + "\n";
      Series& series = all[name + " " + study];
      series.study = study;
      series.opaque = row.text("model").starts_with("{opaque");
      series.samples_per_second[{static_cast<int>(row.whole("workers", Range{1, 1e6})),
                                 static_cast<int>(row.whole("batch.per_worker", Range{1, 1e6}))}] =
          row.number(kUnit, Range{1e-6, 1e12});
    }
  std::erase_if(all, [](const auto& series) { return series.second.samples_per_second.size() < 4; });
  return all;
}

/// How many of these errors, in per cent, lie within what the others say of nine of ten.
int within_others(const std::vector<double>& errors) {
  int count = 0;
  for (std::size_t e = 0; e < errors.size(); ++e) {
    std::vector<double> others;
    for (std::size_t o = 0; o < errors.size(); ++o)
      if (o != e) others.push_back(std::log1p(errors[o] / 100));
    count += std::log1p(errors[e] / 100) <= within_90(others) ? 1 : 0;
  }
  return count;
}

/// Errors of left-out steps, in per cent.
struct LeftOut {
  std::vector<double> fitted, ruler;

  explicit LeftOut(const Series& series) {
    const TemporaryFolder folder;
    folder.write("study.yaml", series.text());
    folder.write("steps.csv", series.csv());
    const std::string out =
        run_good({"calibrate", "steps", "--study", "study.yaml", "--from", "steps.csv"}, folder).out;
    const std::regex row("workers=([0-9]+), batch.*? ([+-][0-9.]+) % +([+-][0-9.]+) %\n");
    for (auto found = std::sregex_iterator(out.begin(), out.end(), row); found != std::sregex_iterator(); ++found) {
      if (series.opaque && std::stoi((*found)[1]) == series.fewest_workers()) continue;  // an input
      fitted.push_back(std::abs(std::stod((*found)[2])));
      ruler.push_back(std::abs(std::stod((*found)[3])));
    }
    REQUIRE_FALSE(fitted.empty());
  }
};

/// Of steps with the two largest numbers of workers, predicted from those with fewer; in per cent.
struct Extrapolated {
  std::vector<double> fitted, ruler;

  explicit Extrapolated(const Series& series) {
    std::set<int> counts;
    for (const auto& [run, rate] : series.samples_per_second) counts.insert(run.first);
    if (counts.size() < 4) return;
    const int largest = *std::next(counts.rbegin(), 2);
    Series known = series;
    std::erase_if(known.samples_per_second, [&](const auto& step) { return step.first.first > largest; });
    const TemporaryFolder folder;
    folder.write("study.yaml", series.text());
    folder.write("steps.csv", known.csv());
    run_good({"calibrate", "steps", "--study", "study.yaml", "--from", "steps.csv", "-o", "c.yaml"}, folder);
    const auto point = [](const auto& step) {
      const auto [workers, batch] = step.first;
      return RulerPoint{static_cast<double>(workers), static_cast<double>(batch), workers * batch / step.second};
    };
    for (const auto& step : series.samples_per_second) {
      const auto [workers, batch] = step.first;
      if (workers <= largest) continue;
      std::vector<RulerPoint> points{point(step)};
      for (const auto& other : known.samples_per_second) points.push_back(point(other));
      const std::optional<double> by_ruler = ruler_left_out(points).front();
      if (!by_ruler) continue;  // two steps at two batch sizes do not determine it
      const auto said = nlohmann::json::parse(
          run_good({"run", "study.yaml", "--format", "json", "--set", "steps=c.yaml", "--set",
                    fmt::format("workers={}", workers), "--set", fmt::format("batch.per_worker={}", batch)},
                   folder)
              .out);
      const double measured = points.front().seconds;
      const auto error = [&](double seconds) { return 100 * std::abs(seconds / measured - 1); };
      fitted.push_back(error(said.at(0).at("iteration_s").get<double>()));
      ruler.push_back(error(*by_ruler));
    }
  }
};

}  // namespace

TEST_CASE("measured steps of one node are predicted from the others better than a ruler predicts them") {
  // Inception-v3 with synthetic images, one to eight workers at two batch sizes.
  std::set<std::string> seen;
  for (const auto& [name, series] : measured_series())
    for (const char* const each : {"tf_dgx_synthetic", "tf_gce_synthetic", "tf_ec2_synthetic"})
      if (name.starts_with(each)) {
        CAPTURE(name);
        seen.insert(each);
        const LeftOut errors(series);
        REQUIRE(errors.fitted.size() == 8);
        CHECK(median(errors.fitted) < median(errors.ruler));
      }
  CHECK(seen.size() == 3);
}

TEST_CASE("series of measured steps are mostly predicted better than by a ruler, and so is their mean", "[long]") {
  std::vector<double> fitted, ruler, medians_fitted, medians_ruler;
  int series_count = 0, better = 0, within = 0;
  for (const auto& [name, series] : measured_series()) {
    CAPTURE(name);
    const LeftOut errors(series);
    fitted.insert(fitted.end(), errors.fitted.begin(), errors.fitted.end());
    ruler.insert(ruler.end(), errors.ruler.begin(), errors.ruler.end());
    medians_fitted.push_back(median(errors.fitted));
    medians_ruler.push_back(median(errors.ruler));
    ++series_count;
    within += within_others(errors.fitted);
    better += medians_fitted.back() < medians_ruler.back() ? 1 : 0;
    UNSCOPED_INFO(fmt::format("{:.1f} % (ruler {:.1f} %)", medians_fitted.back(), medians_ruler.back()));
  }
  CAPTURE(series_count, fitted.size());
  CHECK(3 * better > 2 * series_count);
  CHECK(within >= 0.8 * static_cast<double>(fitted.size()));
  CHECK(median(medians_fitted) < median(medians_ruler));
  CHECK(mean(fitted) < mean(ruler));
  CHECK(median(fitted) < median(ruler));
  if (std::getenv("EPOCAST_TEST_NUMBERS"))
    WARN(
        fmt::format("{} steps of {} series, {} better: median {:.2f} % (ruler {:.2f} %), mean {:.2f} % ({:.2f} %), "
                    "median of series {:.2f} % ({:.2f} %), {} within intervals",
                    fitted.size(), series_count, better, median(fitted), median(ruler), mean(fitted), mean(ruler),
                    median(medians_fitted), median(medians_ruler), within));
}

TEST_CASE("steps with many workers are predicted from those with few, better than by a ruler", "[long]") {
  std::vector<double> fitted, ruler;
  int better = 0;
  for (const auto& [name, series] : measured_series()) {
    CAPTURE(name);
    const Extrapolated errors(series);
    fitted.insert(fitted.end(), errors.fitted.begin(), errors.fitted.end());
    ruler.insert(ruler.end(), errors.ruler.begin(), errors.ruler.end());
  }
  for (std::size_t s = 0; s < fitted.size(); ++s) better += fitted[s] < ruler[s] ? 1 : 0;
  REQUIRE(fitted.size() >= 80);
  CHECK(3 * better > 2 * static_cast<int>(fitted.size()));
  CHECK(median(fitted) < 0.6 * median(ruler));
  CHECK(mean(fitted) < 0.6 * mean(ruler));
  if (std::getenv("EPOCAST_TEST_NUMBERS"))
    WARN(fmt::format("{} steps, {} better: median {:.2f} % (ruler {:.2f} %), mean {:.2f} % ({:.2f} %)", fitted.size(),
                     better, median(fitted), median(ruler), mean(fitted), mean(ruler)));
}

}  // namespace epocast::calibrate_series_test
