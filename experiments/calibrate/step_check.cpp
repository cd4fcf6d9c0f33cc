#include "experiments/calibrate/step_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ostream>
#include <set>
#include <sstream>

#include "costmodels/measured_table.hpp"
#include "experiments/text_table.hpp"
#include "sim/cost_model.hpp"

namespace epocast {
namespace {

constexpr double kLargestError = 0.1;
constexpr double kNoisy = 0.3;  // spread of step times from which medians may be off by several percent

Seconds predict(const MeasuredKernels& measured, const Model& model, const std::string& spec, std::int64_t batch,
                bool fastest) {
  std::istringstream in(to_layer_timings(measured, model, spec, fastest));
  const MeasuredTable table(read_timings(in, "timings of " + model.name), Optimizer::sgd);
  return make_trace(model, table, batch, Device{}).compute_time().longest();
}

}  // namespace

MeasureOptions default_check() {
  MeasureOptions options;
  options.models = {"{name: alexnet, image: 99}", "{name: vgg_a, image: 64}", "{name: resnet50, image: 64}"};
  options.batches = {4};
  options.least = 25;
  options.threads = 1;  // what other programs take of a CPU can be told exactly for one thread
  return options;
}

std::vector<CheckedStep> check_steps(const MeasuredKernels& measured, const std::vector<Model>& models,
                                     const MeasureOptions& options) {
  std::vector<CheckedStep> out;
  for (std::size_t m = 0; m < models.size(); ++m)
    for (const std::int64_t batch : options.batches) {
      CheckedStep c;
      c.model = models[m].name;
      c.batch = batch;
      std::set<int> distinct;
      for (const MeasuredPass& p : measured.passes) {
        if (p.model != options.models[m] || p.batch != batch) continue;
        if (p.layer.empty()) {
          c.step = p.time;
          c.step_fastest = p.fastest;
          c.spread = p.spread;
          c.repetitions = p.repetitions;
        } else {
          ++c.kernels;
          distinct.insert(p.kernel);
        }
      }
      c.distinct = distinct.size();
      c.predicted = predict(measured, models[m], options.models[m], batch, false);
      c.predicted_fastest = predict(measured, models[m], options.models[m], batch, true);
      out.push_back(c);
    }
  return out;
}

bool print_check(std::ostream& out, const MeasuredKernels& measured, const std::vector<CheckedStep>& steps) {
  std::vector<std::vector<std::string>> rows{{"training step", "batch", "kernels", "distinct", "sum of kernels", "step",
                                              "error", "fastest kernels", "fastest step", "steps", "spread"}};
  bool good = true;
  for (const CheckedStep& c : steps) {
    good = good && std::abs(c.error()) <= kLargestError;
    rows.push_back({c.model, std::to_string(c.batch), std::to_string(c.kernels), std::to_string(c.distinct),
                    to_string(c.predicted), to_string(c.step), fmt::format("{:+.1f} %", 100 * c.error()),
                    to_string(c.predicted_fastest), to_string(c.step_fastest), std::to_string(c.repetitions),
                    fmt::format("{:.1f} %", 100 * c.spread)});
  }
  out << fmt::format("{}, {}, threads: {}\n\n", measured.device, measured.library, measured.threads);
  out << align_columns(rows);
  for (const CheckedStep& c : steps)
    if (c.spread > kNoisy)
      out << fmt::format(
          "warning: the steps of {} differ by {:.0f} %: other programs use the CPUs; fewer --threads, or "
          "a quieter machine, tell more\n",
          c.model, 100 * c.spread);
  if (!good) out << fmt::format("missed: an error is larger than {:.0f} %\n", 100 * kLargestError);
  return good;
}

}  // namespace epocast
