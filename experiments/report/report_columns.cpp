#include "experiments/report/report_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

namespace epocast {
namespace {

using nlohmann::ordered_json;

struct ReportUnit {
  double factor;
  const char* name;
};
constexpr ReportUnit kTimes[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {3600, "h"}, {86400, "d"}};
constexpr ReportUnit kSizes[] = {{1, "B"},        {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"},
                                 {0x1p40, "TiB"}, {0x1p50, "PiB"}, {0x1p60, "EiB"}};
constexpr ReportUnit kEnergies[] = {{1, "J"}, {3.6e6, "kWh"}, {3.6e9, "MWh"}, {3.6e12, "GWh"}};
constexpr ReportUnit kMasses[] = {{1, "kg"}, {1000, "t"}};
constexpr ReportUnit kShares[] = {{0.01, "%"}};
constexpr ReportUnit kNone[] = {{1, ""}};
constexpr ReportUnit kSamples[] = {{1, "samples"}};
constexpr ReportUnit kSamplesPerSecond[] = {{1, "samples/s"}};
constexpr ReportUnit kTokensPerSecond[] = {{1, "tokens/s"}};
constexpr ReportUnit kUpdates[] = {{1, "updates"}};
constexpr ReportUnit kEpochs[] = {{1, "epochs"}};

struct ReportTitle {
  std::string title;
  std::span<const ReportUnit> units = kNone;
};

const std::map<std::string, ReportTitle>& titles() {
  static const std::map<std::string, ReportTitle> kTitles = {
      {"workers", {"devices"}},
      {"global_batch", {"global batch", kSamples}},
      {"iteration_s", {"iteration", kTimes}},
      {"epoch_s", {"epoch", kTimes}},
      {"total_s", {"total time", kTimes}},
      {"samples_per_s", {"throughput", kSamplesPerSecond}},
      {"efficiency", {"efficiency", kShares}},
      {"compute_s", {"computation", kTimes}},
      {"comm_s", {"communication", kTimes}},
      {"exposed_comm_s", {"exposed communication", kTimes}},
      {"overlap_ratio", {"overlap", kShares}},
      {"comm_bytes_per_iteration", {"sent per iteration", kSizes}},
      {"comm_bytes_per_epoch", {"sent per epoch", kSizes}},
      {"max_link_utilization", {"busiest link", kShares}},
      {"bubble_fraction", {"devices idle", kShares}},
      {"peak_memory_bytes", {"peak memory", kSizes}},
      {"fits_memory", {"fits into memory"}},
      {"mean_staleness", {"mean staleness", kUpdates}},
      {"max_staleness", {"largest staleness", kUpdates}},
      {"bound_s", {"bound of an iteration", kTimes}},
      {"limited_by", {"limited by"}},
      {"iterations_simulated", {"iterations simulated"}},
      {"tokens_per_s", {"throughput of tokens", kTokensPerSecond}},
      {"mfu", {"MFU", kShares}},
      {"hfu", {"HFU", kShares}},
      {"energy_j", {"energy", kEnergies}},
      {"co2_kg", {"CO2", kMasses}},
      {"goodput", {"goodput", kShares}},
      {"time_to_target_s", {"time to target", kTimes}},
      {"epochs_to_target", {"time to target", kEpochs}},
      {"iteration_low_s", {"iteration, 5 %", kTimes}},
      {"iteration_high_s", {"iteration, 95 %", kTimes}},
  };
  return kTitles;
}

/// "strategy.mesh.tensor" is "tensor"; "batch.per_worker" stays as it is.
std::string short_name(const std::string& name) {
  return std::ranges::count(name, '.') < 2 ? name : name.substr(name.rfind('.') + 1);
}

/// The largest unit that is not larger than the median of what is not zero.
ReportUnit suitable(std::span<const ReportUnit> units, std::vector<double> sizes) {
  std::erase(sizes, 0.0);
  if (sizes.empty()) {
    const auto plain = std::ranges::find(units, 1.0, &ReportUnit::factor);
    return plain == units.end() ? units[0] : *plain;
  }
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  ReportUnit best = units[0];
  for (const ReportUnit& unit : units)
    if (unit.factor <= *middle) best = unit;
  return best;
}

/// 1234567 as "1,234,567".
std::string grouped(double whole) {
  std::string text = fmt::format("{:.0f}", whole);
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

const ordered_json& report_value(const ReportRow& row, const std::string& column) {
  static const ordered_json kNull;
  const auto found = row.values.find(column);
  return found == row.values.end() ? kNull : *found;
}

std::vector<ReportColumn> report_columns(const ReportData& data) {
  std::vector<std::string> names;
  std::map<std::string, bool> known;
  bool any_error = false;
  for (const ReportRow& row : data.rows) {
    any_error |= !row.error.empty();
    for (const auto& [name, value] : row.values.items()) {
      const bool says = !value.is_null() && !(value.is_array() && value.empty());
      if (says && known.emplace(name, true).second) names.push_back(name);
    }
  }
  // Rows of several files may have their columns in different orders: study and scenario first all the same.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "study" || name == "scenario"; });
  std::map<std::string, int> shorts;
  for (const std::string& name : names) ++shorts[short_name(name)];

  std::vector<ReportColumn> columns;
  for (const std::string& name : names) {
    const auto title = titles().find(name);
    ReportColumn column{.name = name, .title = shorts[short_name(name)] > 1 ? name : short_name(name)};
    std::vector<double> sizes;
    bool other = false;
    for (const ReportRow& row : data.rows) {
      const ordered_json& value = report_value(row, name);
      if (value.is_number())
        sizes.push_back(std::abs(value.get<double>()));
      else
        other |= !value.is_null();
      column.varies |= value != report_value(data.rows.front(), name);
    }
    column.numeric = !other && !sizes.empty();
    if (title != titles().end()) {
      column.title = title->second.title;
      if (column.numeric) {
        const ReportUnit unit = suitable(title->second.units, sizes);
        column.unit = unit.name;
        column.factor = unit.factor;
      }
    }
    if (name == "cost") column.unit = data.currency;
    columns.push_back(std::move(column));
  }
  if (any_error) columns.push_back({.name = "error", .title = "why there is no result", .unit = "", .varies = true});
  return columns;
}

std::string report_number(double number) {
  const double size = std::abs(number);
  if (size >= 1e9 || (size > 0 && size < 1e-4)) return fmt::format("{:.4g}", number);
  if (size >= 1000 || number == std::floor(number)) return grouped(std::round(number));
  return fmt::format("{:.4g}", number);
}

std::string report_cell(const ReportRow& row, const ReportColumn& column) {
  if (column.name == "error") return row.error;
  const ordered_json& value = report_value(row, column.name);
  if (value.is_number()) return report_number(value.get<double>() / column.factor);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return "-";
  std::string joined;
  for (const ordered_json& text : value) joined += (joined.empty() ? "" : "; ") + text.get<std::string>();
  return joined;
}

}  // namespace epocast
