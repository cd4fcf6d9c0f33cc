#include "costmodels/network_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <set>
#include <stdexcept>
#include <tuple>

namespace epocast {
namespace {

constexpr Range kPositiveTime{1e-30, 1e30};
constexpr Range kRanks{2, 1e7};
constexpr Range kBytes{1, 1e15};

CollectiveOp parse_op(const ConfigNode& node) {
  try {
    return parse_measured_op(node.as_string());
  } catch (const std::invalid_argument& problem) {
    throw node.error(problem.what());
  }
}

FittedParameter read_limits(const ConfigNode& node, const char* name, const char* unit) {
  const std::vector<ConfigNode> items = node.items();
  if (items.size() != 3) throw node.error("must be [value, low, high]");
  return {name, unit, items[0].as_double(kPositiveTime), items[1].as_double(kPositiveTime),
          items[2].as_double(kPositiveTime)};
}

std::string limits_text(const FittedParameter& p) {
  return fmt::format("[{:.6g}, {:.6g}, {:.6g}]", p.value, p.low, p.high);
}

NetworkQuality read_network_quality(const ConfigNode& node) {
  constexpr Range kCount{0, 1e9};
  constexpr Range kError{0, 1e6};
  NetworkQuality q;
  q.points = static_cast<int>(node.at("points").as_int(kCount));
  q.fitted = static_cast<int>(node.at("fitted").as_int(kCount));
  q.held_out = static_cast<int>(node.at("held_out").as_int(kCount));
  q.alpha_beta = node.at("alpha_beta_error").as_double(kError);
  q.error = node.at("error").as_double(kError);
  q.ninetieth = node.at("error_90").as_double(kError);
  return q;
}

void read_across_nodes(const ConfigNode& node, NetworkFit& fit) {
  const ConfigNode quality = node.at("quality");
  constexpr Range kError{0, 1e6};
  fit.quality.points = static_cast<int>(quality.at("points").as_int({0, 1e9}));
  fit.quality.held_out = static_cast<int>(quality.at("held_out").as_int({0, 1e9}));
  fit.quality.error = quality.at("error").as_double(kError);
  fit.quality.ninetieth = quality.at("error_90").as_double(kError);
  fit.quality.small = quality.at("error_small").as_double(kError);
  const std::vector<ConfigNode> protocols = node.at("protocols").items();
  if (protocols.size() != kProtocols) throw node.at("protocols").error("must be three lists");
  fit.protocols.emplace();
  for (std::size_t i = 0; i < kProtocols; ++i) {
    const std::vector<ConfigNode> constants = protocols[i].items();
    if (constants.size() != kProtocolConstants) throw protocols[i].error("must be [base, level, step, beta]");
    for (std::size_t c = 0; c < kProtocolConstants; ++c)
      (*fit.protocols)[i * kProtocolConstants + c] = constants[c].as_double(kPositiveTime);
  }
  for (const ConfigNode& point : node.at("points").items()) {
    const std::vector<ConfigNode> items = point.items();
    if (items.size() != 4) throw point.error("must be [ranks, nodes, bytes, time in s]");
    const GroupShape group{static_cast<int>(items[0].as_int(kRanks)),
                           static_cast<int>(items[1].as_int({1, kRanks.max}))};
    if (group.ranks % group.nodes != 0) throw items[1].error("must divide the ranks");
    const double bytes = items[2].as_double(kBytes);
    const Seconds time(items[3].as_double({1e-12, 1e6}));
    fit.groups.push_back({group, bytes, time});
    fit.points.push_back({fit.op, fit.library, group.ranks, bytes, time, point.where().line, group.nodes});
  }
  if (fit.points.empty()) throw node.at("points").error("must list at least one measurement");
}

NetworkFit read_fit(const ConfigNode& node) {
  NetworkFit fit;
  fit.op = parse_op(node.at("operation"));
  fit.library = node.at("library").as_string();
  if (node.has("protocols")) {
    read_across_nodes(node, fit);
    return fit;
  }
  fit.quality = read_network_quality(node.at("quality"));
  fit.alpha = read_limits(node.at("alpha"), "alpha", "s");
  fit.gamma = node.at("gamma").as_double({0, 1});
  for (const ConfigNode& knot : node.at("knots").items()) {
    fit.knots.push_back(knot.as_double(kBytes));
    if (fit.knots.size() > 1 && fit.knots.back() <= fit.knots[fit.knots.size() - 2])
      throw knot.error("knots must rise");
  }
  for (const ConfigNode& beta : node.at("betas").items()) fit.betas.push_back(read_limits(beta, "beta", "s/B"));
  if (fit.knots.empty() || fit.betas.size() != fit.knots.size())
    throw node.at("betas").error("must have one element for each of the knots");
  const ConfigNode speed = node.at("speed");
  for (const std::string& key : speed.keys()) {
    int ranks = 0;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), ranks);
    if (failed != std::errc{} || end != key.data() + key.size() || ranks < 2)
      throw speed.at(key).error("must stand under a number of ranks from 2 up");
    fit.speed[ranks] = read_limits(speed.at(key), "speed", "");
  }
  for (const ConfigNode& point : node.at("points").items()) {
    const std::vector<ConfigNode> items = point.items();
    if (items.size() != 3) throw point.error("must be [ranks, bytes, time in s]");
    fit.points.push_back({fit.op, fit.library, static_cast<int>(items[0].as_int(kRanks)), items[1].as_double(kBytes),
                          Seconds(items[2].as_double({1e-12, 1e6})), point.where().line});
  }
  if (fit.points.empty()) throw node.at("points").error("must list at least one measurement");
  const ConfigNode interpolation = node.at("interpolation");
  InterpolationSettings settings;
  settings.amplitude = interpolation.at("amplitude").as_double({1e-6, 1e3});
  settings.noise = interpolation.at("noise").as_double({1e-6, 1e3});
  for (const ConfigNode& length : interpolation.at("lengths").items())
    settings.lengths.push_back(length.as_double({1e-6, 1e6}));
  if (settings.lengths.size() != 2) throw interpolation.at("lengths").error("must have 2 elements");
  interpolate_residuals(fit, settings);
  return fit;
}

void write_fit(std::string& out, const NetworkFit& fit) {
  auto to = std::back_inserter(out);
  const NetworkQuality& q = fit.quality;
  fmt::format_to(to, "  - operation: {}\n    library: {}\n", to_string(fit.op), yaml_quoted(fit.library));
  if (fit.protocols) {
    fmt::format_to(to,
                   "    quality: {{points: {}, held_out: {}, error: {:.4g}, error_90: {:.4g}, error_small: {:.4g}}}\n",
                   q.points, q.held_out, q.error, q.ninetieth, q.small);
    fmt::format_to(to, "    protocols:\n");
    for (std::size_t i = 0; i < kProtocols; ++i) {
      const double* c = fit.protocols->data() + i * kProtocolConstants;
      fmt::format_to(to, "      - [{:.6g}, {:.6g}, {:.6g}, {:.6g}]\n", c[0], c[1], c[2], c[3]);
    }
    fmt::format_to(to, "    points:\n");
    for (const CollectiveTiming& p : fit.points)
      fmt::format_to(to, "      - [{}, {}, {:.12g}, {:.7g}]\n", p.ranks, p.nodes, p.bytes, p.time.value);
    return;
  }
  fmt::format_to(to,
                 "    quality: {{points: {}, fitted: {}, held_out: {}, alpha_beta_error: {:.4g}, error: {:.4g}, "
                 "error_90: {:.4g}}}\n",
                 q.points, q.fitted, q.held_out, q.alpha_beta, q.error, q.ninetieth);
  fmt::format_to(to, "    alpha: {}\n    gamma: {:.6g}\n    knots: [{:.10g}]\n    betas:\n", limits_text(fit.alpha),
                 fit.gamma, fmt::join(fit.knots, ", "));
  for (const FittedParameter& beta : fit.betas) fmt::format_to(to, "      - {}\n", limits_text(beta));
  fmt::format_to(to, "    speed:\n");
  for (const auto& [ranks, value] : fit.speed) fmt::format_to(to, "      {}: {}\n", ranks, limits_text(value));
  const InterpolationSettings& s = fit.residuals.settings();
  fmt::format_to(to, "    interpolation: {{amplitude: {:.6g}, noise: {:.6g}, lengths: [{:.6g}]}}\n    points:\n",
                 s.amplitude, s.noise, fmt::join(s.lengths, ", "));
  for (const CollectiveTiming& p : fit.points)
    fmt::format_to(to, "      - [{}, {:.12g}, {:.7g}]\n", p.ranks, p.bytes, p.time.value);
}

}  // namespace

std::string yaml_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

bool is_network_measurements(const CsvTable& table) { return table.has("operation") && table.has("ranks"); }

NetworkMeasurements read_network_measurements(const CsvTable& table) {
  table.check_header({"device", "interconnect", "source"}, {"date", "licence", "note"});
  table.check_columns({"operation", "library", "ranks", "bytes", "time_s"}, {"nodes"});
  NetworkMeasurements out;
  out.device = table.header().at("device").text;
  out.interconnect = table.header().at("interconnect").text;
  out.source = table.header().at("source").text;
  if (table.header().contains("date")) out.date = table.header().at("date").text;
  std::set<std::tuple<CollectiveOp, std::string, int, int, double>> seen;
  for (const CsvRow& row : table.rows()) {
    CollectiveTiming timing;
    try {
      timing.op = parse_measured_op(row.text("operation"));
    } catch (const std::invalid_argument& problem) {
      throw row.error("operation", problem.what());
    }
    timing.library = row.text("library");
    if (timing.library.empty()) throw row.error("library", "is empty");
    timing.ranks = static_cast<int>(row.whole("ranks", kRanks));
    if (timing.op == CollectiveOp::send && timing.ranks != 2)
      throw row.error("ranks", "must be 2: a message goes from one rank to another");
    timing.bytes = row.number("bytes", kBytes);
    timing.time = Seconds(row.seconds("time_s"));
    timing.line = row.line();
    if (table.has("nodes")) timing.nodes = static_cast<int>(row.whole("nodes", {1, kRanks.max}));
    if (timing.ranks % timing.nodes != 0)
      throw row.error("nodes", "must divide the " + std::to_string(timing.ranks) + " ranks, which are spread evenly");
    if (!seen.emplace(timing.op, timing.library, timing.ranks, timing.nodes, timing.bytes).second)
      throw row.error("bytes", "there is already a row for this operation, library, ranks and size; remove one");
    out.timings.push_back(std::move(timing));
  }
  return out;
}

const NetworkFit* NetworkCalibration::find(CollectiveOp op, const std::string& library) const {
  for (const NetworkFit& fit : fits)
    if (fit.op == op && (library.empty() || fit.library == library)) return &fit;
  return nullptr;
}

NetworkCalibration read_network_calibration(const ConfigNode& root) {
  NetworkCalibration out;
  if (root.at("calibration").as_string() != "network")
    throw root.at("calibration").error("must be 'network' here, not '" + root.at("calibration").as_string() + "'");
  out.device = root.at("device").as_string();
  out.interconnect = root.at("interconnect").as_string();
  out.source = root.at("source").as_string();
  out.date = root.get("date", "");
  out.confidence = root.get("confidence", "");
  for (const ConfigNode& fit : root.at("fits").items()) out.fits.push_back(read_fit(fit));
  relate_settings(out.fits);
  root.check_all_read();
  return out;
}

std::string to_yaml(const NetworkCalibration& c) {
  std::string out = fmt::format(
      "# Written by `epocast calibrate network`; see docs/calibration.md.\ncalibration: network\ndevice: "
      "{}\ninterconnect: {}\nsource: {}\n",
      yaml_quoted(c.device), yaml_quoted(c.interconnect), yaml_quoted(c.source));
  if (!c.date.empty()) out += "date: " + yaml_quoted(c.date) + "\n";
  if (!c.confidence.empty()) out += "confidence: " + yaml_quoted(c.confidence) + "\n";
  out += "fits:\n";
  for (const NetworkFit& fit : c.fits) write_fit(out, fit);
  return out;
}

}  // namespace epocast
