#include "costmodels/compute_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "costmodels/network_calibration.hpp"
#include "sim/config_word.hpp"
#include "sim/data_file.hpp"

namespace epocast {
namespace {

constexpr Range kPositive{1e-30, 1e30};

/// Shares are of products on matrix units, over what they reach on the measured device in 16 bits: half-rate units and
/// power limits, which fp32 does not meet. What was measured in tf32 is not held back as 16 bits are.
double product_share_on(const Device& device, Precision precision, Precision measured) {
  if (precision == Precision::fp32) return 1;
  return measured == Precision::tf32 ? std::min(1.0, device.product_share) : device.product_share;
}

std::string triple(const FittedParameter& p) { return fmt::format("[{:.6g}, {:.6g}, {:.6g}]", p.value, p.low, p.high); }

void write_fit(std::string& out, const KernelFit& fit) {
  auto to = std::back_inserter(out);
  const FitQuality& q = fit.quality;
  fmt::format_to(to, "  - operator: {}\n    pass: {}\n", fit.family, to_string(fit.pass));
  if (!fit.borrowed_from.empty())
    fmt::format_to(to, "    borrowed_from: {}\n", yaml_quoted(fit.borrowed_from));
  else
    fmt::format_to(to,
                   "    quality: {{points: {}, shapes: {}, roofline_error: {:.4g}, physical_error: {:.4g}, error: "
                   "{:.4g}, error_90: {:.4g}}}\n",
                   q.points, q.shapes, q.roofline, q.physical, q.final, q.ninetieth);
  fmt::format_to(to, "    parameters:\n");
  for (const FittedParameter& p : fit.parameters) fmt::format_to(to, "      {}: {}\n", p.name, triple(p));
  fmt::format_to(to, "    class_factors:\n");
  for (const auto& [name, p] : fit.class_factors) fmt::format_to(to, "      {}: {}\n", yaml_quoted(name), triple(p));
  if (!fit.borrowed_from.empty()) return;
  const InterpolationSettings& s = fit.residuals.settings();
  fmt::format_to(to, "    interpolation: {{amplitude: {:.6g}, noise: {:.6g}, lengths: [{:.6g}]}}\n", s.amplitude,
                 s.noise, fmt::join(s.lengths, ", "));
  fmt::format_to(to, "    points:\n");
  for (const KernelTiming& p : fit.points)
    // A gemm fit holds all passes; the pass changes nothing there but must not be lost elsewhere.
    fmt::format_to(to, "      - [{}, {:.7g}]\n", p.shape.text(), p.time.value);
}

FittedParameter read_triple(const ConfigNode& node, const std::string& name, const std::string& unit) {
  const std::vector<ConfigNode> items = node.items();
  if (items.size() != 3) throw node.error("must be [value, low, high]");
  return {name, unit, items[0].as_double(kPositive), items[1].as_double(kPositive), items[2].as_double(kPositive)};
}

FitQuality read_quality(const ConfigNode& node) {
  constexpr Range kError{0, 1e6};
  return {.points = static_cast<int>(node.at("points").as_int({0, 1e9})),
          .shapes = static_cast<int>(node.at("shapes").as_int({0, 1e9})),
          .roofline = node.at("roofline_error").as_double(kError),
          .physical = node.at("physical_error").as_double(kError),
          .final = node.at("error").as_double(kError),
          .ninetieth = node.at("error_90").as_double(kError)};
}

KernelTiming read_point(const ConfigNode& node, const KernelFit& fit) {
  const std::vector<ConfigNode> items = node.items();
  if (items.size() != 2) throw node.error("must be [shape, time in s]");
  KernelTiming out;
  try {
    out.shape = parse_kernel_shape(fit.family, to_string(fit.pass), items[0].as_string());
  } catch (const std::invalid_argument& problem) {
    throw items[0].error(problem.what());
  }
  out.time = Seconds(items[1].as_double({1e-12, 1e6}));
  out.line = node.where().line;
  return out;
}

KernelFit read_fit(const ConfigNode& node, const DeviceRates& rates) {
  KernelFit fit;
  const std::vector<std::string> families = kernel_families();
  fit.family = node.at("operator").as_string();
  if (std::ranges::find(families, fit.family) == families.end())
    throw node.at("operator").error("unknown operator '" + fit.family + "'" + name_hint(fit.family, families));
  const std::string pass = node.at("pass").as_string();
  const std::vector<std::string> passes = kernel_pass_names();
  const auto found = std::ranges::find(passes, pass);
  if (found == passes.end()) throw node.at("pass").error("unknown pass '" + pass + "'" + name_hint(pass, passes));
  fit.pass = static_cast<KernelPass>(found - passes.begin());
  fit.borrowed_from = node.get("borrowed_from", "");
  const bool measured = fit.borrowed_from.empty();
  if (measured) fit.quality = read_quality(node.at("quality"));
  for (const FitParameter& p : kernel_parameters(fit.family, rates.precision))
    fit.parameters.push_back(read_triple(node.at("parameters").at(p.name), p.name, p.unit));
  const ConfigNode classes = node.at("class_factors");
  for (const std::string& name : classes.keys())
    fit.class_factors.emplace_back(name, read_triple(classes.at(name), name, ""));
  if (!measured) return fit;
  for (const ConfigNode& point : node.at("points").items()) fit.points.push_back(read_point(point, fit));
  if (fit.points.empty()) throw node.at("points").error("must list at least one measurement");

  const ConfigNode interpolation = node.at("interpolation");
  const KernelWork work = kernel_work(fit.points.front().shape);
  InterpolationSettings settings{.lengths = {},
                                 .amplitude = interpolation.at("amplitude").as_double({1e-6, 1e3}),
                                 .noise = interpolation.at("noise").as_double({1e-6, 1e3}),
                                 .amounts = work.amounts};
  for (const ConfigNode& length : interpolation.at("lengths").items())
    settings.lengths.push_back(length.as_double({1e-6, 1e6}));
  if (settings.lengths.size() != work.features.size())
    throw interpolation.at("lengths").error(
        fmt::format("must have {} elements for operator {}", work.features.size(), fit.family));
  interpolate_residuals(fit, rates, settings);
  return fit;
}

/// Formats whose kernels are the same but for the rate of products and the bytes of a value.
bool on_matrix_units(Precision precision) {
  return precision == Precision::tf32 || precision == Precision::fp16 || precision == Precision::bf16;
}

}  // namespace

const KernelFit* ComputeCalibration::find(const std::string& family, KernelPass pass) const {
  for (const KernelFit& fit : fits)
    if (fit.family == family && (fit.pass == pass || family == "gemm")) return &fit;
  return nullptr;
}

ComputeCalibration read_compute_calibration(const ConfigNode& root) {
  ComputeCalibration out;
  if (root.at("calibration").as_string() != "compute")
    throw root.at("calibration").error("must be 'compute' here, not '" + root.at("calibration").as_string() + "'");
  out.device = root.at("device").as_string();
  out.source = root.at("source").as_string();
  out.library = root.get("library", "");
  out.date = root.get("date", "");
  out.confidence = root.get("confidence", "");
  const ConfigNode rates = root.at("rates");
  out.rates = {rates.at("peak_rate").as_flop_per_second({1e6, 1e18}),
               rates.at("memory_bandwidth").as_bytes_per_second({1e6, 1e15}), rates.at("units").as_double({1, 1e6}),
               parse_name(root.at("precision"), parse_precision)};
  if (root.has("scaled_from")) {
    out.scaled_from = root.at("scaled_from").as_string();
    if (root.has("expected_error")) out.expected_error = root.at("expected_error").as_double({0, 10});
    const auto folder = std::filesystem::path(root.where().file).parent_path();
    const auto file = find_data_file(root.at("scaled_from"), {"calibration", folder, ".yaml"});
    const ConfigNode base = ConfigNode::load_file(file);
    if (base.has("scaled_from"))
      throw root.at("scaled_from").error("is itself scaled from another; name the measured one");
    ComputeCalibration measured = read_compute_calibration(base);
    if (measured.rates.precision != out.rates.precision &&
        !(on_matrix_units(measured.rates.precision) && on_matrix_units(out.rates.precision)))
      throw root.at("precision")
          .error(std::string("must be ") + to_string(measured.rates.precision) +
                 ", in which 'scaled_from' was measured; tf32, fp16 and bf16 may stand for each other");
    out.fits = std::move(measured.fits);  // efficiencies and residuals stay, rates change
    out.efficiency = root.get("efficiency", out.efficiency, {0.01, 10});
    out.rates.peak_rate = out.efficiency * out.rates.peak_rate;
    out.rates.memory_bandwidth = out.efficiency * out.rates.memory_bandwidth;
  } else {
    for (const ConfigNode& fit : root.at("fits").items()) out.fits.push_back(read_fit(fit, out.rates));
  }
  root.check_all_read();
  return out;
}

ComputeCalibration load_compute_calibration(const std::filesystem::path& file) {
  return read_compute_calibration(ConfigNode::load_file(file));
}

bool has_rates_of(const Device& device, Precision precision, const ComputeCalibration& calibration) {
  constexpr double kRounding = 0.01;
  const auto alike = [](double a, double b) { return std::abs(a - b) <= kRounding * b; };
  const double products =
      product_share_on(device, precision, calibration.rates.precision) * device.matrix_rate(precision).value;
  return alike(calibration.efficiency * products, calibration.rates.peak_rate.value) &&
         alike(calibration.efficiency * device.memory_bandwidth.value, calibration.rates.memory_bandwidth.value);
}

ComputeCalibration at_rates_of(const Device& device, Precision precision, ComputeCalibration measured,
                               const std::string& name) {
  measured.scaled_from = name;
  measured.device = device.model.text();
  measured.product_share = product_share_on(device, precision, measured.rates.precision);
  measured.rates = {measured.efficiency * measured.product_share * device.matrix_rate(precision),
                    measured.efficiency * device.memory_bandwidth, static_cast<double>(device.cores), precision};
  return measured;
}

std::string to_yaml(const ComputeCalibration& c) {
  std::string out = "# Written by `epocast calibrate compute`; see docs/calibration.md.\n";
  auto to = std::back_inserter(out);
  fmt::format_to(to, "calibration: compute\ndevice: {}\nsource: {}\n", yaml_quoted(c.device), yaml_quoted(c.source));
  if (!c.library.empty()) fmt::format_to(to, "library: {}\n", yaml_quoted(c.library));
  if (!c.date.empty()) fmt::format_to(to, "date: {}\n", yaml_quoted(c.date));
  if (!c.confidence.empty()) fmt::format_to(to, "confidence: {}\n", yaml_quoted(c.confidence));
  fmt::format_to(
      to,
      "precision: {}\nrates: {{peak_rate: {:.12g} GFLOP/s, memory_bandwidth: {:.12g} GB/s, units: {:.12g}}}\nfits:\n",
      to_string(c.rates.precision), c.rates.peak_rate.value / 1e9, c.rates.memory_bandwidth.value / 1e9, c.rates.units);
  for (const KernelFit& fit : c.fits) write_fit(out, fit);
  return out;
}

}  // namespace epocast
