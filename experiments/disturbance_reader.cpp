#include "experiments/disturbance_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "costmodels/csv_table.hpp"
#include "experiments/find_device.hpp"
#include "sim/data_file.hpp"

namespace epocast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMaxSeed = 9e15, kMaxDate = 1e12;
constexpr double kShortestPeriod = 1e-3;  // s: less would be noise, and slow to simulate
constexpr std::size_t kMostSeeds = 1000;

using Workers = std::vector<std::vector<DeviceId>>;

/// The devices that are worker `node` in some phase.
std::set<DeviceId> devices_of_worker(const ConfigNode& node, const Workers& workers) {
  std::size_t most = 0;
  for (const auto& phase : workers) most = std::max(most, phase.size());
  const std::int64_t worker = node.as_int(Range{0});
  if (worker >= static_cast<std::int64_t>(most))
    throw node.error(fmt::format("worker {} does not exist; workers are numbered 0..{}", worker, most - 1));
  std::set<DeviceId> devices;
  for (const auto& phase : workers)
    if (worker < static_cast<std::int64_t>(phase.size())) devices.insert(phase[static_cast<std::size_t>(worker)]);
  return devices;
}

/// `from`, `until` and `every` of an entry.
SlowWindow read_window(const ConfigNode& entry, double factor) {
  SlowWindow window{.factor = factor};
  window.from = entry.get("from", Seconds(0), Range{0, kMaxDate}).value;
  if (entry.has("until")) {
    window.until = entry.at("until").as_seconds(Range{0, kMaxDate}).value;
    if (window.until <= window.from) throw entry.at("until").error("is not after `from`");
  }
  if (entry.has("every")) {
    window.period = entry.at("every").as_seconds(Range{kShortestPeriod, kMaxDate}).value;
    if (window.until == kNever) throw entry.at("every").error("what repeats must end; give `until`");
    if (window.period <= window.until - window.from)
      throw entry.at("every").error("is not longer than from `from` until `until`, so it would never be over");
  }
  return window;
}

void read_stragglers(const ConfigNode& entries, const Cluster& cluster, const Workers& workers, Irregularity& out) {
  for (const ConfigNode& entry : entries.items()) {
    const auto devices = devices_of_worker(entry.at("worker"), workers);
    const double factor = entry.at("slowdown").as_double(Range{1e-3, 1e6});
    const bool always = !entry.has("from") && !entry.has("until") && !entry.has("every");
    if (always) out.slowdown.resize(cluster.devices.size(), 1);
    for (const DeviceId device : devices) {
      if (always)
        out.slowdown[static_cast<std::size_t>(device)] *= factor;  // as windows that overlap do
      else
        out.slow_devices.push_back({device, read_window(entry, factor)});
    }
  }
}

void read_stops(const ConfigNode& entries, const Workers& workers, Irregularity& out) {
  for (const ConfigNode& entry : entries.items())
    for (const DeviceId device : devices_of_worker(entry.at("worker"), workers)) {
      entry.at("from");  // a worker that never does anything would be a mistake
      out.slow_devices.push_back({device, read_window(entry, kNever)});
    }
}

void read_degraded_links(const ConfigNode& entries, const Cluster& cluster, const Workers& workers, Irregularity& out) {
  for (const ConfigNode& entry : entries.items()) {
    if (entry.has("worker") == entry.has("host"))
      throw entry.error("give either worker or host: whose links carry less");
    const std::set<DeviceId> devices = entry.has("worker") ? devices_of_worker(entry.at("worker"), workers)
                                                           : std::set<DeviceId>{find_device(cluster, entry.at("host"))};
    const double factor = entry.at("slowdown").as_double(Range{1, 1e6});
    for (const DeviceId device : devices) out.slow_links.push_back({device, read_window(entry, factor)});
  }
}

std::shared_ptr<const NoiseTrace> read_trace(const ConfigNode& file) {
  const std::filesystem::path path = find_data_file(file, {"noise trace", "", ".csv"});
  const CsvTable table = CsvTable::load(path);
  table.check_columns({"factor"}, {});
  std::vector<double> factors;
  for (const CsvRow& row : table.rows()) factors.push_back(row.number("factor", Range{1e-6, 1e6}));
  return NoiseTrace::from(std::move(factors));
}

void read_noise_trace(const ConfigNode& noise, NoiseModel& model) {
  if (!noise.has("trace")) throw noise.error("kind: trace needs a `trace`: a CSV file with a column `factor`");
  model.trace = read_trace(noise.at("trace"));
  if (!noise.has("compute_cv")) model.compute_cv = model.trace->cv;
  const double least = *std::min_element(model.trace->factors.begin(), model.trace->factors.end());
  for (const auto& [key, cv] : {std::pair{"compute_cv", model.compute_cv}, {"transfer_cv", model.transfer_cv}}) {
    if (model.trace->cv == 0 && cv > 0)
      throw noise.at(key).error("all factors of the trace are equal, and no scale makes them vary; use another trace");
    if (model.trace->cv > 0 && 1 + (least - 1) * cv / model.trace->cv <= 0)
      throw noise.at(key).error(
          fmt::format("scaled to this, the trace would have times below 0; use less than {:.3g}, its own is {:.3g}",
                      model.trace->cv / (1 - least), model.trace->cv));
  }
}

std::vector<std::uint64_t> read_seeds(const ConfigNode& noise, std::uint64_t first) {
  if (!noise.has("seeds")) return {first};
  const ConfigNode node = noise.at("seeds");
  std::vector<std::uint64_t> seeds;
  if (node.is_list()) {
    for (const ConfigNode& seed : node.items())
      seeds.push_back(static_cast<std::uint64_t>(seed.as_int(Range{0, kMaxSeed})));
    if (seeds.empty() || seeds.size() > kMostSeeds)
      throw node.error(fmt::format("a list of 1 to {} seeds is wanted", kMostSeeds));
    if (std::set(seeds.begin(), seeds.end()).size() < seeds.size()) throw node.error("a seed is named twice");
  } else {
    const std::int64_t count = node.as_int(Range{1, static_cast<double>(kMostSeeds)});
    for (std::int64_t k = 0; k < count; ++k) seeds.push_back(first + static_cast<std::uint64_t>(k));
  }
  return seeds;
}

/// The word at `key`, one of `words`, as its position in the list.
std::size_t read_word(const ConfigNode& node, const char* key, const std::vector<std::string>& words) {
  if (!node.has(key)) return 0;
  const std::string word = node.at(key).as_string();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end())
    throw node.at(key).error(fmt::format("unknown {} '{}'{}", key, word, name_hint(word, words)));
  return static_cast<std::size_t>(found - words.begin());
}

void read_noise(const ConfigNode& noise, Irregularity& out) {
  NoiseModel& model = out.noise;
  model.kind = static_cast<NoiseKind>(read_word(noise, "kind", {"log_normal", "gamma", "trace"}));
  model.scope = static_cast<NoiseScope>(read_word(noise, "per", {"task", "step"}));
  model.compute_cv = noise.get("compute_cv", 0.0, Range{0, 10});
  model.transfer_cv = noise.get("transfer_cv", 0.0, Range{0, 10});
  if (model.kind == NoiseKind::trace)
    read_noise_trace(noise, model);
  else if (noise.has("trace"))
    throw noise.at("trace").error("belongs to kind: trace");
  const auto first = static_cast<std::uint64_t>(noise.get("seed", std::int64_t{1}, Range{0, kMaxSeed}));
  out.seeds = read_seeds(noise, first);
  model.seed = out.seeds.front();
  if (!model.any()) out.seeds.resize(1);  // all the same
}

}  // namespace

Irregularity read_irregularity(const ConfigNode& config, const Cluster& cluster, const Workers& workers) {
  Irregularity out;
  out.seeds = {1};
  if (config.has("noise") && !config.at("noise").is_null()) {
    config.at("noise").keys();  // throws for anything but a map
    read_noise(config.at("noise"), out);
  }
  if (config.has("stragglers")) read_stragglers(config.at("stragglers"), cluster, workers, out);
  if (config.has("stops")) read_stops(config.at("stops"), workers, out);
  if (config.has("degraded_links")) read_degraded_links(config.at("degraded_links"), cluster, workers, out);
  return out;
}

}  // namespace epocast
