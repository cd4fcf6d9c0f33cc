#include "experiments/calibrate/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "experiments/calibrate/plot.hpp"
#include "experiments/text_table.hpp"
#include "sim/error.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr int kFewShapes = 20;  // below, intervals and errors mean little

std::string in_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string value_text(double value, const std::string& unit) {
  return unit == "s" ? to_string(Seconds(value)) : fmt::format("{:.4g}", value);
}

std::vector<std::string> parameter_row(const std::string& of, const std::string& name, const FittedParameter& p) {
  if (p.low == p.high) return {of, name, value_text(p.value, p.unit), "", "fixed"};
  return {of, name, value_text(p.value, p.unit), value_text(p.low, p.unit), value_text(p.high, p.unit)};
}

std::string name_of(const KernelFit& fit) {
  return fit.family == "gemm" ? fit.family : fit.family + " " + to_string(fit.pass);
}

std::vector<std::string> quality_row(const std::string& name, const FitQuality& q) {
  if (q.points == 0)
    return {name, "1", "1", "untested", "untested", "untested", "untested"};  // one shape: none to learn from
  return {name,
          std::to_string(q.points),
          std::to_string(q.shapes),
          in_percent(q.roofline),
          in_percent(q.physical),
          in_percent(q.final),
          in_percent(q.ninetieth)};
}

}  // namespace

void print_report(std::ostream& out, const std::vector<TestedFit>& fits) {
  std::vector<std::vector<std::string>> rows{{"median error, shape left out", "points", "shapes", "roofline", "formula",
                                              "with interpolation", "90th percentile"}};
  std::map<std::string, std::vector<HeldOut>> by_family;
  std::vector<HeldOut> all;
  for (const TestedFit& f : fits) {
    rows.push_back(quality_row(name_of(f.fit), f.fit.quality));
    auto& family = by_family[f.fit.family];
    family.insert(family.end(), f.held_out.begin(), f.held_out.end());
    all.insert(all.end(), f.held_out.begin(), f.held_out.end());
  }
  for (const auto& [family, held_out] : by_family)
    if (family != "gemm" && !held_out.empty())
      rows.push_back(quality_row(family + ", all passes", quality_of(held_out)));
  out << align_columns(rows) << '\n';

  rows = {{"fit", "constant", "value", "95 % from", "to"}};
  for (const TestedFit& f : fits) {
    for (const FittedParameter& p : f.fit.parameters) rows.push_back(parameter_row(name_of(f.fit), p.name, p));
    for (const auto& [name, p] : f.fit.class_factors)
      rows.push_back(parameter_row(name_of(f.fit), "factor " + name, p));
  }
  out << align_columns(rows) << '\n';

  const auto off = [](const HeldOut& h) { return std::abs(std::log(h.final / h.timing.time.value)); };
  std::ranges::sort(all, std::greater{}, off);
  rows = {{"worst residuals", "shape", "measured", "predicted"}};
  for (std::size_t i = 0; i < std::min<std::size_t>(5, all.size()); ++i)
    rows.push_back({std::string(all[i].timing.shape.family()) + " " + to_string(all[i].timing.shape.pass),
                    all[i].timing.shape.text(), to_string(all[i].timing.time), to_string(Seconds(all[i].final))});
  out << align_columns(rows);
  for (const TestedFit& f : fits) {
    const int shapes = std::max(1, f.fit.quality.shapes);  // of a single one nothing was left out
    if (shapes < kFewShapes)
      out << fmt::format(
          "warning: {} has only {}, so its constants stay near what was expected and other shapes are "
          "extrapolated\n",
          name_of(f.fit), counted(shapes, "shape"));
    if (f.fit.quality.final > 1.2 * f.fit.quality.physical)
      out << fmt::format(
          "warning: for shapes that {} has not seen, interpolation is worse than the formula alone; measure more of "
          "them\n",
          name_of(f.fit));
  }
}

std::string what_is_forecast(const std::string& library) {
  // PyTorch 1.13 on CPUs: the kernels' sums were 63 to 67 and 22 % below its steps.
  if (library.starts_with("oneDNN"))
    return "forecasts will be sums of oneDNN's kernels, not steps of a framework: on CPUs, PyTorch's step of ResNet-50 "
           "took about 3 times as long, that of VGG-16 1.3 times\n"
           "for steps of PyTorch, time its kernels (--kernels pytorch), or measure a step and give it as "
           "compute.step_time\n";
  if (library.starts_with("PyTorch"))
    return "forecasts will be sums of PyTorch's kernels; what else a step takes, a few measured steps tell: "
           "epocast calibrate steps\n";
  return "forecasts will be sums of these kernels, not steps of a framework; what else a step takes, a few measured "
         "steps tell: "
         "epocast calibrate steps\n";
}

void print_report(std::ostream& out, const std::vector<NetworkFit>& fits) {
  std::vector<std::vector<std::string>> rows{{"median error, held out, 1 MB and more", "points", "fitted", "held out",
                                              "one alpha and beta", "piecewise", "90th percentile"}};
  for (const NetworkFit& f : fits) {
    const NetworkQuality& q = f.quality;
    const auto error = [&](double share) { return q.held_out > 0 ? in_percent(share) : "untested"; };
    rows.push_back({std::string(to_string(f.op)) + ", " + f.library, std::to_string(q.points), std::to_string(q.fitted),
                    std::to_string(q.held_out), f.protocols ? "" : error(q.alpha_beta), error(q.error),
                    error(q.ninetieth)});
    if (f.protocols && q.small > 0) rows.push_back({"  below 1 MB", "", "", "", "", in_percent(q.small), ""});
  }
  out << align_columns(rows) << '\n';
  rows = {{"fit", "constant", "value", "95 % from", "to"}};
  for (const NetworkFit& f : fits) {
    if (f.protocols) {
      constexpr const char* kNames[] = {"base [s]", "level [s]", "step [s]", "beta [s/B]"};
      for (std::size_t i = 0; i < f.protocols->size(); ++i)
        rows.push_back({std::string(to_string(f.op)) + ", " + f.library,
                        fmt::format("protocol {}: {}", 1 + i / kProtocolConstants, kNames[i % kProtocolConstants]),
                        fmt::format("{:.4g}", (*f.protocols)[i]), "", ""});
      continue;
    }
    rows.push_back(parameter_row(f.library, "alpha", f.alpha));
    for (std::size_t k = 0; k < f.knots.size(); ++k)
      rows.push_back(parameter_row(f.library, "beta at " + to_string(Bytes(f.knots[k])) + " [s/B]", f.betas[k]));
    rows.push_back({f.library, "gamma [s/B]", fmt::format("{:.4g}", f.gamma), "", f.gamma > 0 ? "given" : "in beta"});
    for (const auto& [ranks, speed] : f.speed)
      rows.push_back(parameter_row(f.library, fmt::format("speed, {} ranks", ranks), speed));
  }
  out << align_columns(rows);
  for (const NetworkFit& f : fits)
    if (f.points.size() < 9)
      out << fmt::format("warning: {} has only {}; other sizes and rank counts are extrapolated\n", f.library,
                         counted(f.points.size(), "point"));
}

std::string plot_fits(const std::string& title, const std::vector<TestedFit>& fits) {
  std::vector<PlotSeries> series;
  for (const TestedFit& f : fits) {
    series.push_back({name_of(f.fit), {}});
    for (const HeldOut& h : f.held_out) series.back().points.push_back({h.timing.time.value, h.final});
  }
  return scatter_svg(title, "predicted without having seen the shape", series);
}

std::string plot_fits(const std::string& title, const std::vector<NetworkFit>& fits,
                      const std::vector<CollectiveTiming>& points) {
  std::vector<PlotSeries> series;
  for (const NetworkFit& f : fits) {
    series.push_back({f.library, {}});
    for (const CollectiveTiming& p : points)
      if (p.op == f.op && p.library == f.library)
        series.back().points.push_back({p.time.value, f.time(p.ranks, p.bytes).value});
  }
  return scatter_svg(title, "fitted", series);
}

}  // namespace epocast
