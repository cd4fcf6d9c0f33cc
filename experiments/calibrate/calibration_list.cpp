#include "experiments/calibrate/calibration_list.hpp"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/network_calibration.hpp"
#include "experiments/text_table.hpp"
#include "sim/data_file.hpp"

namespace epocast {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void add(Rows& rows, const std::string& name, const ComputeCalibration& c) {
  const std::string precision = to_string(c.rates.precision);
  if (!c.scaled_from.empty()) {
    rows.push_back({name, c.device, precision, "all", "scaled from " + c.scaled_from,
                    c.expected_error ? percent(*c.expected_error) : "not known", ""});
    return;
  }
  for (const KernelFit& fit : c.fits) {
    const std::string what = fit.family == "gemm" ? "gemm" : fit.family + " " + to_string(fit.pass);
    if (fit.borrowed_from.empty())
      rows.push_back({name, c.device, precision, what, std::to_string(fit.quality.points), percent(fit.quality.final),
                      percent(fit.quality.ninetieth)});
    else
      rows.push_back({name, c.device, precision, what, "from " + fit.borrowed_from, "unknown", ""});
  }
}

void add(Rows& rows, const std::string& name, const NetworkCalibration& c) {
  for (const NetworkFit& fit : c.fits)
    rows.push_back({name, c.device, "", fmt::format("{}, {}", to_string(fit.op), fit.library),
                    std::to_string(fit.quality.points),
                    fit.quality.held_out > 0 ? percent(fit.quality.error) : "untested",
                    fit.quality.held_out > 0 ? percent(fit.quality.ninetieth) : ""});
}

/// Of rows as add() makes them.
std::string sureness(const Rows& rows) {
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", row[3], row[5]);
    if (!row[6].empty()) out += fmt::format(" (90th percentile {})", row[6]);
    if (row[5] == "unknown") out += " (" + row[4] + ")";
  }
  return out;
}

}  // namespace

std::string how_sure(const ComputeCalibration& calibration) {
  Rows rows;
  add(rows, "", calibration);
  return sureness(rows);
}

std::string how_sure(const NetworkCalibration& calibration) {
  Rows rows;
  add(rows, "", calibration);
  return sureness(rows);
}

void print_calibrations(std::ostream& out, const std::filesystem::path& folder, const std::string& name) {
  Rows rows{{"calibration", "device", "precision", "operation", "measured", "median error", "90th percentile"}};
  const std::vector<std::string> names = data_file_names(folder, ".yaml");
  for (const std::string& one : names) {
    if (!name.empty() && one != name) continue;
    const ConfigNode root = ConfigNode::load_file(folder / (one + ".yaml"));
    const std::string kind = root.at("calibration").as_string();
    if (kind == "compute") add(rows, one, read_compute_calibration(root));
    if (kind == "network") add(rows, one, read_network_calibration(root));
  }
  if (rows.size() == 1) throw ConfigError("no calibration '" + name + "'" + name_hint(name, names));
  for (std::size_t i = rows.size() - 1; i > 1; --i)  // each name once
    if (rows[i][0] == rows[i - 1][0]) rows[i][0] = rows[i][1] = rows[i][2] = "";
  out << align_columns(rows) << "\nErrors are of measurements that were left out of the fit.\n";
}

}  // namespace epocast
