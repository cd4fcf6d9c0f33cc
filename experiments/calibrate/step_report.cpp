#include "experiments/calibrate/step_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <utility>

#include "experiments/calibrate/plot.hpp"
#include "experiments/calibrate/step_ruler.hpp"
#include "experiments/interval.hpp"
#include "experiments/text_table.hpp"
#include "sim/quantile.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

std::string error_text(double predicted, double measured) {
  return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
}

double median_error(const StepMeasurements& measured, const std::vector<double>& predicted) {
  std::vector<double> errors;
  for (std::size_t s = 0; s < predicted.size(); ++s)
    errors.push_back(std::abs(predicted[s] / measured.steps[s].seconds - 1));
  return median(std::move(errors));
}

std::vector<double> log_errors(const StepMeasurements& measured, const std::vector<double>& predicted) {
  std::vector<double> out;
  for (std::size_t s = 0; s < predicted.size(); ++s) out.push_back(std::log(predicted[s] / measured.steps[s].seconds));
  return out;
}

std::vector<std::optional<double>> by_ruler(const StepMeasurements& measured) {
  std::vector<RulerPoint> points;
  for (const MeasuredStep& step : measured.steps)
    points.push_back({step.place.workers, step.place.batch, step.seconds});
  return ruler_left_out(points);
}

/// Where every step is said by the others.
std::string ruler_error(const StepMeasurements& measured, const std::vector<std::optional<double>>& ruler) {
  std::vector<double> predicted;
  for (const std::optional<double>& said : ruler) {
    if (!said) return "untested";
    predicted.push_back(*said);
  }
  return fmt::format("{:.1f} %", 100 * median_error(measured, predicted));
}

std::string value_text(const FittedParameter& p, double value) {
  return p.unit == "s" ? to_string(Seconds(value)) : fmt::format("{:.4g}", value);
}

}  // namespace

void print_report(std::ostream& out, const StepMeasurements& measured, const std::vector<double>& before,
                  const StepFit& fit) {
  const std::vector<std::optional<double>> ruler = by_ruler(measured);
  std::vector<std::vector<std::string>> rows{{"step", "measured", "without", "fitted", "left out", "by a ruler"}};
  for (std::size_t s = 0; s < measured.steps.size(); ++s) {
    const MeasuredStep& step = measured.steps[s];
    rows.push_back({step.settings.empty() ? "as the study" : step.settings, to_string(Seconds(step.seconds)),
                    error_text(before[s], step.seconds), error_text(fit.predicted[s], step.seconds),
                    fit.left_out.empty() ? "untested" : error_text(fit.left_out[s], step.seconds),
                    ruler[s] ? error_text(*ruler[s], step.seconds) : "untested"});
  }
  rows.push_back(
      {"median of errors", "", fmt::format("{:.1f} %", 100 * median_error(measured, before)),
       fmt::format("{:.1f} %", 100 * median_error(measured, fit.predicted)),
       fit.left_out.empty() ? "untested" : fmt::format("{:.1f} %", 100 * median_error(measured, fit.left_out)),
       ruler_error(measured, ruler)});
  out << align_columns(rows) << '\n';
  rows = {{"constant", "value", "95 % from", "to"}};
  for (const FittedParameter& p : fit.constants)
    rows.push_back({p.name, value_text(p, p.value), value_text(p, p.low), value_text(p, p.high)});
  out << align_columns(rows);
  out << fmt::format("{} rounds, {} simulations\n", fit.rounds, fit.simulations);
  double most = 1;
  for (const Discrepancy::Pull& pull : fit.discrepancy.pulls()) {
    const double factor = fit.discrepancy.factor(pull.place);
    most = std::max({most, factor, 1 / factor});
  }
  if (most > 1.0005)
    out << fmt::format("near these steps, computing is corrected by what the constants leave: up to {:.1f} %\n",
                       100 * (most - 1));
  if (const double within = within_90(log_errors(measured, fit.left_out)); within > 0)
    out << fmt::format("nine of ten forecasts among these steps lie within {:.1f} %\n", 100 * std::expm1(within));
  for (const std::string& key : fit.held)
    out << fmt::format("{} is held at a usual value: the steps do not show that it has another\n", key);
  for (const std::string& warning : fit.warnings) out << "warning: " << warning << '\n';
  for (const FittedParameter& p : fit.constants)
    if (p.name == "network.efficiency" && p.low > 1 && std::ranges::find(fit.held, p.name) == fit.held.end())
      out << "warning: network.efficiency is above 1: links are faster than the platform says, or less is sent\n";
}

std::string plot_steps(const StepMeasurements& measured, const StepFit& fit) {
  std::vector<PlotSeries> series{{"fitted", {}}, {"predicted from the other steps", {}}};
  for (std::size_t s = 0; s < measured.steps.size(); ++s) {
    series[0].points.push_back({measured.steps[s].seconds, fit.predicted[s]});
    if (!fit.left_out.empty()) series[1].points.push_back({measured.steps[s].seconds, fit.left_out[s]});
  }
  if (fit.left_out.empty()) series.pop_back();
  return scatter_svg(measured.study, "simulated", series);
}

StepCalibration to_calibration(const StepMeasurements& measured, const StepFit& fit) {
  return {.study = measured.study,
          .source = measured.source,
          .date = measured.date,
          .points = static_cast<int>(measured.steps.size()),
          .error = median_error(measured, fit.predicted),
          .left_out_error = median_error(measured, fit.left_out),
          .within_90 = within_90(log_errors(measured, fit.left_out)),
          .measured = measured.range,
          .constants = fit.constants,
          .discrepancy = fit.discrepancy};
}

}  // namespace epocast
