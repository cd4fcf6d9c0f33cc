// Reading a scenario's configuration: which keys there are, what they default to, what is wrong with them.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "costmodels/register.hpp"
#include "experiments/scenario.hpp"
#include "platforms/platform_loader.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

constexpr double kMaxCount = 1e12;       // samples, batches: beyond any data set
constexpr std::int64_t kMaxEpochs = 1'000'000;

/// Turns the exception of a name parser into one with a place.
template <class Parse>
auto parse_name(const ConfigNode& node, Parse parse) {
  try {
    return parse(node.as_string());
  } catch (const std::invalid_argument& problem) {
    throw node.error(problem.what());
  }
}

ConfigNode child_or_empty(const ConfigNode& config, const char* key) {
  if (!config.has(key)) return ConfigNode::load_text("{}", key);
  return config.at(key);
}

DeviceId find_device(const Cluster& cluster, const ConfigNode& node) {
  const std::string name = node.as_string();
  std::vector<std::string> names;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    if (cluster.devices[d].name == name) return static_cast<DeviceId>(d);
    names.push_back(cluster.devices[d].name);
  }
  throw node.error("platform '" + cluster.name + "' has no host '" + name + "'" + name_hint(name, names));
}

/// `workers: 4` takes the platform's first four devices; `workers: {hosts: [..]}` names them.
std::vector<DeviceId> read_workers(const ConfigNode& node, const Cluster& cluster) {
  std::vector<DeviceId> workers;
  if (node.is_map()) {
    for (const ConfigNode& host : node.at("hosts").items()) {
      workers.push_back(find_device(cluster, host));
      if (std::count(workers.begin(), workers.end(), workers.back()) > 1)
        throw host.error("host '" + host.as_string() + "' is named twice");
    }
    if (workers.empty()) throw node.at("hosts").error("no workers; name at least one host");
    return workers;
  }
  const std::int64_t count = node.as_int(Range{1, 1e6});
  if (count > static_cast<std::int64_t>(cluster.devices.size()))
    throw node.error(fmt::format("{} workers, but platform '{}' has {} hosts; use fewer workers or another platform", count,
                                 cluster.name, cluster.devices.size()));
  for (DeviceId d = 0; d < count; ++d) workers.push_back(d);
  return workers;
}

/// What a phase starts from: the scenario's own settings, changed by a schedule entry.
struct BatchSetting {
  std::int64_t value = 32;
  bool per_worker = true;
  ConfigNode place;
};

BatchSetting read_batch(const ConfigNode& batch) {
  if (!batch.is_map()) throw batch.error("write `batch: {per_worker: 32}` or `batch: {global: 256}`");
  if (batch.has("per_worker") && batch.has("global"))
    throw batch.error("give either per_worker or global, not both");
  const char* key = batch.has("global") ? "global" : "per_worker";
  if (!batch.has(key)) throw batch.error("give per_worker or global");
  return {batch.at(key).as_int(Range{1, kMaxCount}), !batch.has("global"), batch.at(key)};
}

PhaseSettings make_phase(const std::vector<DeviceId>& workers, const BatchSetting& batch, std::int64_t samples,
                         std::int64_t epochs, bool drop_last) {
  const auto count = static_cast<std::int64_t>(workers.size());
  PhaseSettings phase{workers, batch.per_worker ? batch.value * count : batch.value, epochs, 0};
  if (phase.global_batch % count != 0)
    throw batch.place.error(fmt::format("a global batch of {} cannot be divided over {} workers; nearest multiples: {} and {}",
                                        batch.value, count, std::max<std::int64_t>(1, batch.value / count) * count,
                                        (batch.value / count + 1) * count));
  const std::int64_t per_epoch = drop_last ? samples / phase.global_batch : (samples + phase.global_batch - 1) / phase.global_batch;
  if (per_epoch == 0)
    throw batch.place.error(fmt::format("a global batch of {} is larger than the data set of {} samples", phase.global_batch, samples));
  phase.iterations = per_epoch * epochs;
  return phase;
}

/// A schedule entry may say `batch: {global: 64}` or, shorter, `batch.global: 64`.
BatchSetting entry_batch(const ConfigNode& entry, const BatchSetting& fallback) {
  if (entry.has("batch")) return read_batch(entry.at("batch"));
  const bool global = entry.has("batch.global");
  if (global && entry.has("batch.per_worker")) throw entry.error("give either batch.per_worker or batch.global, not both");
  if (!global && !entry.has("batch.per_worker")) return fallback;
  const ConfigNode value = entry.at(global ? "batch.global" : "batch.per_worker");
  return {value.as_int(Range{1, kMaxCount}), !global, value};
}

std::vector<PhaseSettings> read_phases(const ConfigNode& config, const Cluster& cluster, std::int64_t samples) {
  const std::vector<DeviceId> workers =
      config.has("workers") ? read_workers(config.at("workers"), cluster) : std::vector<DeviceId>{0};
  const BatchSetting batch = config.has("batch") ? read_batch(config.at("batch")) : BatchSetting{32, true, config};
  const ConfigNode dataset = child_or_empty(config, "dataset");
  const bool drop_last = dataset.get("drop_last", false);
  const std::int64_t epochs = dataset.get("epochs", std::int64_t{1}, Range{1, static_cast<double>(kMaxEpochs)});
  if (!config.has("schedule")) return {make_phase(workers, batch, samples, epochs, drop_last)};

  std::vector<PhaseSettings> phases;
  for (const ConfigNode& entry : config.at("schedule").items()) {
    const std::int64_t phase_epochs = entry.at("epochs").as_int(Range{1, static_cast<double>(kMaxEpochs)});
    phases.push_back(make_phase(entry.has("workers") ? read_workers(entry.at("workers"), cluster) : workers,
                                entry_batch(entry, batch), samples, phase_epochs, drop_last));
  }
  if (phases.empty()) throw config.at("schedule").error("a schedule needs at least one phase, as in `- {epochs: 10, batch.global: 64}`");
  return phases;
}

CollectiveSettings read_collective(const ConfigNode& node) {
  CollectiveSettings settings;
  if (node.has("algorithm")) settings.algorithm = parse_name(node.at("algorithm"), parse_collective_algorithm);
  if (node.has("level")) settings.level = parse_name(node.at("level"), parse_collective_level);
  if (node.has("reduction_rate")) settings.gamma = 1 / node.at("reduction_rate").as_bytes_per_second(Range{1}).value;
  return settings;
}

std::vector<double> read_stragglers(const ConfigNode& config, const Cluster& cluster, const std::vector<PhaseSettings>& phases) {
  if (!config.has("stragglers")) return {};
  std::size_t most = 0;
  for (const PhaseSettings& phase : phases) most = std::max(most, phase.workers.size());
  std::vector<double> slowdown(cluster.devices.size(), 1);
  for (const ConfigNode& entry : config.at("stragglers").items()) {
    const std::int64_t worker = entry.at("worker").as_int(Range{0});
    if (worker >= static_cast<std::int64_t>(most))
      throw entry.at("worker").error(fmt::format("worker {} does not exist; workers are numbered 0..{}", worker, most - 1));
    const double factor = entry.at("slowdown").as_double(Range{1e-3, 1e6});
    for (const PhaseSettings& phase : phases)
      if (worker < static_cast<std::int64_t>(phase.workers.size()))
        slowdown[static_cast<std::size_t>(phase.workers[static_cast<std::size_t>(worker)])] = factor;
  }
  return slowdown;
}

}  // namespace

Registries builtin_registries() { return {builtin_strategies()}; }

StrategyContext ScenarioSetup::context(const PhaseSettings& phase) const {
  const Device& device = cluster.devices[static_cast<std::size_t>(phase.workers.front())];
  return {.cluster = cluster,
          .workers = phase.workers,
          .global_batch = phase.global_batch,
          .trace = [this, &device](std::int64_t batch) { return make_trace(model, *cost_model, batch, device); },
          .collective = collective,
          .optimizer = optimizer};
}

ScenarioSetup read_scenario(const Scenario& scenario, const Registries& registries) {
  const ConfigNode& config = scenario.config;
  const std::filesystem::path data = data_directory();
  ScenarioSetup setup;
  config.at("study").as_string();
  config.get("description", "");

  setup.cluster = load_platform(find_data_file(config.at("platform"), {"platform", data / "platforms", ".xml"}));

  const ConfigNode strategy = config.has("strategy") ? config.at("strategy") : ConfigNode::load_text("{name: data_parallel}", "default");
  setup.strategy_name = strategy.is_map() ? strategy.at("name").as_string() : strategy.as_string();
  setup.strategy = registries.strategies.make(setup.strategy_name, strategy.is_map() ? strategy : ConfigNode::load_text("{}", "strategy"),
                                              strategy.is_map() ? strategy.at("name") : strategy);

  const ConfigNode dataset = child_or_empty(config, "dataset");
  // ImageNet-1K (ILSVRC 2012) training images.
  setup.samples = dataset.get("samples", std::int64_t{1281167}, Range{1, kMaxCount});
  setup.phases = read_phases(config, setup.cluster, setup.samples);
  setup.collective = read_collective(child_or_empty(config, "collective"));
  if (config.has("optimizer")) setup.optimizer = parse_name(config.at("optimizer"), parse_optimizer);

  if (setup.strategy->needs_model() || config.has("model")) {
    setup.model = load_model_named(config.at("model"), data);
    const ConfigNode compute = child_or_empty(config, "compute");
    const Device& device = setup.cluster.devices[static_cast<std::size_t>(setup.phases.front().workers.front())];
    setup.cost_model = make_cost_model(compute, {data, &setup.model, &device, setup.optimizer});
    compute.check_all_read();
  }
  const ConfigNode noise = child_or_empty(config, "noise");
  setup.noise.compute_cv = noise.get("compute_cv", 0.0, Range{0, 10});
  setup.noise.seed = static_cast<std::uint64_t>(noise.get("seed", std::int64_t{1}, Range{0, 9e15}));
  setup.slowdown = read_stragglers(config, setup.cluster, setup.phases);
  config.check_all_read();
  return setup;
}

}  // namespace epocast
