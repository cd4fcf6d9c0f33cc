#include "costmodels/kernel_measurements.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <stdexcept>
#include <tuple>

namespace epocast {
namespace {

std::string header_text(const CsvTable& table, const std::string& key) {
  const auto found = table.header().find(key);
  return found == table.header().end() ? "" : found->second.text;
}

/// A header value with its unit, parsed by `parse`; none if the header lacks it.
template <class Quantity>
std::optional<Quantity> header_quantity(const CsvTable& table, const std::string& key,
                                        Quantity (*parse)(std::string_view)) {
  const auto found = table.header().find(key);
  if (found == table.header().end()) return std::nullopt;
  try {
    const Quantity value = parse(found->second.text);
    if (!(value.value > 0)) throw std::invalid_argument("must be positive");
    return value;
  } catch (const std::invalid_argument& problem) {
    throw table.error(found->second.line, key, problem.what());
  }
}

std::optional<double> header_units(const CsvTable& table) {
  const auto found = table.header().find("units");
  if (found == table.header().end()) return std::nullopt;
  const std::string& text = found->second.text;
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 1)
    throw table.error(found->second.line, "units",
                      "must be a whole number of cores or multiprocessors, not '" + text + "'");
  return value;
}

Precision header_precision(const CsvTable& table) {
  const CsvTable::HeaderValue& precision = table.header().at("precision");
  try {
    return parse_precision(precision.text);
  } catch (const std::invalid_argument& problem) {
    throw table.error(precision.line, "precision", problem.what());
  }
}

}  // namespace

bool is_kernel_measurements(const CsvTable& table) { return table.has("operator") && table.has("shape"); }

KernelMeasurements read_kernel_measurements(const CsvTable& table) {
  table.check_header({"device", "source", "precision"},
                     {"peak_rate", "memory_bandwidth", "units", "library", "date", "threads", "licence", "note"});
  table.check_columns({"operator", "pass", "shape", "time_s"}, {"repetition", "repetitions", "spread"});
  KernelMeasurements out{.device = header_text(table, "device"),
                         .source = header_text(table, "source"),
                         .library = header_text(table, "library"),
                         .date = header_text(table, "date"),
                         .threads = header_text(table, "threads"),
                         .note = {},
                         .precision = header_precision(table),
                         .peak_rate = header_quantity(table, "peak_rate", &parse_flop_per_second),
                         .memory_bandwidth = header_quantity(table, "memory_bandwidth", &parse_bytes_per_second),
                         .units = header_units(table),
                         .timings = {},
                         .left_out = {}};
  std::set<std::tuple<std::string, KernelPass, std::string, std::int64_t>> seen;
  for (const CsvRow& row : table.rows()) {
    KernelTiming timing;
    try {
      timing.shape = parse_kernel_shape(row.text("operator"), row.text("pass"), row.text("shape"));
    } catch (const std::invalid_argument& problem) {
      throw row.error("shape", problem.what());
    }
    timing.time = Seconds(row.seconds("time_s"));
    timing.line = row.line();
    if (table.has("repetitions")) timing.repetitions = static_cast<int>(row.whole("repetitions", {1, 1e9}));
    if (table.has("spread")) timing.spread = row.number("spread", {0, 1e6});
    const std::int64_t repetition = table.has("repetition") ? row.whole("repetition", {1, 1e6}) : 1;
    if (!seen.emplace(timing.shape.family(), timing.shape.pass, timing.shape.text(), repetition).second)
      throw row.error("shape", "there is already a row for '" + timing.shape.text() +
                                   "' in this pass; remove one, or number them in a column 'repetition'");
    out.timings.push_back(std::move(timing));
  }
  return out;
}

void write_kernel_measurements(std::ostream& out, const KernelMeasurements& m, const std::string& licence) {
  fmt::print(out, "# device: {}\n# source: {}\n", m.device, m.source);
  if (!licence.empty()) fmt::print(out, "# licence: {}\n", licence);
  fmt::print(out, "# precision: {}\n", to_string(m.precision));
  if (!m.library.empty()) fmt::print(out, "# library: {}\n", m.library);
  if (!m.date.empty()) fmt::print(out, "# date: {}\n", m.date);
  if (m.peak_rate) fmt::print(out, "# peak_rate: {:.12g} GFLOP/s\n", m.peak_rate->value / 1e9);
  if (m.memory_bandwidth) fmt::print(out, "# memory_bandwidth: {:.12g} GB/s\n", m.memory_bandwidth->value / 1e9);
  if (m.units) fmt::print(out, "# units: {:.0f}\n", *m.units);
  if (!m.threads.empty()) fmt::print(out, "# threads: {}\n", m.threads);
  if (!m.note.empty()) fmt::print(out, "# note: {}\n", m.note);
  const bool repeated = std::ranges::any_of(m.timings, [](const KernelTiming& t) { return t.repetitions > 0; });
  fmt::print(out, "operator,pass,shape,repetition,time_s{}\n", repeated ? ",repetitions,spread" : "");
  std::map<std::tuple<std::string, KernelPass, std::string>, int> repetitions;
  for (const KernelTiming& t : m.timings) {
    const std::string family = t.shape.family();
    const std::string text = t.shape.text();
    fmt::print(out, "{},{},{},{},{:.7g}", family, to_string(t.shape.pass), text,
               ++repetitions[{family, t.shape.pass, text}], t.time.value);
    if (repeated) fmt::print(out, ",{},{:.3g}", std::max(1, t.repetitions), t.spread);
    fmt::print(out, "\n");
  }
}

}  // namespace epocast
