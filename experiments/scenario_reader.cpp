// Reading a scenario's configuration: which keys there are, what they default to, what is wrong with them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

#include "costmodels/framework_kernels.hpp"
#include "costmodels/register.hpp"
#include "experiments/batch_schedule.hpp"
#include "experiments/calibrate/step_measurements.hpp"
#include "experiments/collective_check.hpp"
#include "experiments/default_strategy.hpp"
#include "experiments/find_device.hpp"
#include "experiments/learning/settings.hpp"
#include "experiments/model_work.hpp"
#include "experiments/scenario.hpp"
#include "experiments/stack_settings.hpp"
#include "experiments/usual_stack.hpp"
#include "platforms/platform_loader.hpp"
#include "sim/config_word.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"
#include "sim/input_memo.hpp"
#include "sim/words.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

constexpr double kMostOfAnything = 1e12;  // samples, batches: beyond any data set
constexpr std::int64_t kMaxEpochs = 1'000'000;

/// A document that stands in for what the study leaves out.
ConfigNode stand_in(const ConfigNode& config, const char* text) {
  return ConfigNode::load_text(text, config.where().file);
}

/// The map at `key`, empty if it is left out.
ConfigNode child_or_empty(const ConfigNode& config, const char* key) {
  if (!config.has(key) || config.at(key).is_null()) return stand_in(config, "{}");
  const ConfigNode child = config.at(key);
  child.keys();  // throws for anything but a map
  return child;
}

/// `key: NAME` is short for `key: {name_key: NAME}`. Messages keep their place.
ConfigNode map_or_name(const ConfigNode& node, const std::string& key, const std::string& name_key) {
  if (!node.is_scalar()) return node;
  node.as_string();
  return stand_in(node, "").with(key + "." + name_key, node).at(key);
}

/// The strategy, or the default.
ConfigNode read_strategy(const ConfigNode& config) {
  const ConfigNode strategy = config.has("strategy") ? config.at("strategy") : stand_in(config, kDefaultStrategy);
  if (!strategy.is_map()) strategy.as_string();  // throws for lists
  return map_or_name(strategy, "strategy", "name");
}

/// How computing is timed; empty if it is left out.
ConfigNode read_compute(const ConfigNode& config) {
  if (!config.has("compute") || config.at("compute").is_null()) return stand_in(config, "{}");
  const ConfigNode compute = map_or_name(config.at("compute"), "compute", "cost_model");
  compute.keys();  // throws for anything but a map
  return compute;
}

/// The child at `key`; without one, the usual error (which knows misspelt keys) with a remedy.
ConfigNode required(const ConfigNode& config, const char* key, const char* remedy) {
  try {
    return config.at(key);
  } catch (const ConfigError& problem) {
    if (config.has(key)) throw;
    throw config.error(problem.problem() + "; " + remedy);
  }
}

/// Constants fitted to measured steps, which stand for keys of the study.
std::optional<StepConstants> read_steps(const ConfigNode& config, const std::filesystem::path& data) {
  if (!config.is_map() || !config.has("steps")) return std::nullopt;
  const ConfigNode name = config.at("steps");
  const auto file = find_data_file(name, {"calibration", data / "costmodels" / "calibrations", ".yaml"});
  const ConfigNode root = ConfigNode::load_file(file);
  if (!root.is_map() || !root.has("calibration") || root.at("calibration").as_string() != "steps")
    throw name.error("'" + name.as_string() + "' is no steps calibration, as `epocast calibrate steps` writes");
  return StepConstants(root, name.as_string());
}

/// `workers: 4` takes the platform's first four devices; `workers: {hosts: [..]}` names them.
std::vector<DeviceId> read_workers(const ConfigNode& node, const Cluster& cluster) {
  std::vector<DeviceId> workers;
  if (node.is_map()) {
    for (const ConfigNode& host : node.at("hosts").items()) {
      workers.push_back(find_device(cluster, host));
      if (!cluster.devices[static_cast<std::size_t>(workers.back())].trains)
        throw host.error("host '" + host.as_string() + "' trains nothing; name devices of its node");
      if (std::count(workers.begin(), workers.end(), workers.back()) > 1)
        throw host.error("host '" + host.as_string() + "' is named twice");
    }
    if (workers.empty()) throw node.at("hosts").error("no workers; name at least one host");
    return workers;
  }
  const std::int64_t all = cluster.trainers();
  const std::int64_t count = node.is_scalar() && node.as_string() == "all" ? all : node.as_int(Range{1, 1e6});
  if (count > all)
    throw node.error(fmt::format("{} workers, but platform '{}' has {}; use fewer workers or another platform", count,
                                 cluster.name, counted(cluster.trainers(), "host")));
  for (DeviceId d = 0; d < count; ++d) workers.push_back(d);
  return workers;
}

/// What a phase starts from: the scenario's own settings, changed by a schedule entry.
struct BatchSetting {
  enum Of { per_worker, per_replica, global };
  std::int64_t value = 32;
  Of of = per_worker;
  ConfigNode place;
  std::optional<Spare> spare = {};  ///< if the batch need not divide

  std::int64_t of_all(std::int64_t workers, std::int64_t replicas) const {
    return of == global ? value : value * (of == per_worker ? workers : replicas);
  }
};

constexpr std::pair<const char*, BatchSetting::Of> kBatchKeys[] = {{"per_worker", BatchSetting::per_worker},
                                                                   {"per_replica", BatchSetting::per_replica},
                                                                   {"global", BatchSetting::global}};

/// The one of the keys, each behind `prefix`, that the map has; nothing if it has none. Throws ConfigError for several.
std::optional<BatchSetting> read_batch_key(const ConfigNode& map, const std::string& prefix) {
  std::optional<BatchSetting> found;
  for (const auto& [key, of] : kBatchKeys) {
    if (!map.has(prefix + key)) continue;
    if (found) throw map.error("give only one of per_worker, per_replica and global");
    const ConfigNode value = map.at(prefix + key);
    found = BatchSetting{value.as_int(Range{1, kMostOfAnything}), of, value};
  }
  return found;
}

BatchSetting read_batch(const ConfigNode& batch) {
  if (!batch.is_map()) throw batch.error("write `batch: {per_worker: 32}` or `batch: {global: 256}`");
  auto found = read_batch_key(batch, "");
  const std::optional<Spare> spare = batch.has("spare") ? std::optional(read_spare(batch.at("spare"))) : std::nullopt;
  if (!found) {
    batch.check_all_read();  // a misspelt key says more than a missing one
    throw batch.error("give per_worker or global, as in `batch: {per_worker: 32}`");
  }
  found->spare = spare;
  return *found;
}

PhaseSettings make_phase(const std::vector<DeviceId>& workers, const BatchSetting& batch, const Strategy& strategy,
                         std::int64_t samples, std::int64_t epochs, bool drop_last) {
  const auto count = static_cast<std::int64_t>(workers.size());
  const std::int64_t divisor = strategy.batch_divisor(count);
  PhaseSettings phase{workers, batch.of_all(count, divisor), epochs, samples, drop_last};
  if (batch.spare && divisor == count) share_unevenly(phase, *batch.spare);
  if (phase.global_batch % divisor != 0 && !(batch.spare && divisor == count))
    throw batch.place.error(fmt::format(
        "a global batch of {} cannot be divided over {} {}; nearest multiples: {} and {}", phase.global_batch, divisor,
        divisor == count ? "workers" : "replicas", std::max<std::int64_t>(1, phase.global_batch / divisor) * divisor,
        (phase.global_batch / divisor + 1) * divisor));
  // A smaller last batch is simulated as a whole one, but one that the data set cannot fill at all is a mistake.
  if (phase.global_batch > samples)
    throw batch.place.error(fmt::format("a global batch of {} is larger than the data set of {}; use a smaller batch",
                                        phase.global_batch, counted(samples, "sample")));
  phase.iterations = phase.iterations_of(static_cast<double>(phase.global_batch));
  return phase;
}

/// A schedule entry may say `batch: {global: 64}` or, shorter, `batch.global: 64`.
BatchSetting entry_batch(const ConfigNode& entry, const BatchSetting& fallback) {
  if (entry.has("batch")) return read_batch(entry.at("batch"));
  return read_batch_key(entry, "batch.").value_or(fallback);
}

/// Phases by a rule; sets `adaptive` if learning has a say in them.
std::vector<PhaseSettings> read_rule(const ConfigNode& node, const std::vector<DeviceId>& workers,
                                     const Strategy& strategy, std::int64_t samples, bool drop_last,
                                     std::shared_ptr<const BatchDoubling>& adaptive) {
  const auto rule = std::make_shared<const BatchDoubling>(
      read_batch_doubling(node, workers, strategy.batch_divisor(static_cast<std::int64_t>(workers.size())), samples));
  node.check_all_read();
  std::vector<PhaseSettings> phases = rule->phases(rule->adaptive() ? 1 : rule->every, samples, drop_last);
  for (const PhaseSettings& phase : phases)
    if (const std::int64_t divisor = strategy.batch_divisor(static_cast<std::int64_t>(phase.workers.size()));
        phase.shares.empty() && phase.global_batch % divisor != 0)
      throw node.error(
          fmt::format("a global batch of {} cannot be divided over {} replicas", phase.global_batch, divisor));
  if (rule->adaptive()) adaptive = rule;
  return phases;
}

std::vector<PhaseSettings> read_phases(const ConfigNode& config, const Cluster& cluster, const Strategy& strategy,
                                       std::int64_t samples, std::shared_ptr<const BatchDoubling>& adaptive) {
  const std::vector<DeviceId> workers =
      config.has("workers") ? read_workers(config.at("workers"), cluster) : std::vector<DeviceId>{0};
  const BatchSetting batch = config.has("batch") ? read_batch(config.at("batch")) : BatchSetting{.place = config};
  const ConfigNode dataset = child_or_empty(config, "dataset");
  const bool drop_last = dataset.get("drop_last", false);
  const std::int64_t epochs = dataset.get("epochs", std::int64_t{1}, Range{1, static_cast<double>(kMaxEpochs)});
  if (!config.has("schedule")) return {make_phase(workers, batch, strategy, samples, epochs, drop_last)};

  if (config.at("schedule").is_map())
    return read_rule(config.at("schedule"), workers, strategy, samples, drop_last, adaptive);
  std::vector<PhaseSettings> phases;
  for (const ConfigNode& entry : config.at("schedule").items()) {
    const std::int64_t phase_epochs = entry.at("epochs").as_int(Range{1, static_cast<double>(kMaxEpochs)});
    phases.push_back(make_phase(entry.has("workers") ? read_workers(entry.at("workers"), cluster) : workers,
                                entry_batch(entry, batch), strategy, samples, phase_epochs, drop_last));
  }
  if (phases.empty())
    throw config.at("schedule").error("a schedule needs at least one phase, as in `- {epochs: 10, batch.global: 64}`");
  return phases;
}

Model load_model_once(const ConfigNode& value, const std::filesystem::path& data) {
  static InputMemo<Model> models;
  return models.get(value, [&] { return load_model_named(value, data); });
}

Cluster load_platform_once(const ConfigNode& value, const std::filesystem::path& data) {
  static InputMemo<Cluster> clusters;
  return clusters.get(value, [&] { return load_platform_named(value, data); });
}

/// `tokens: 300e9`: so many samples of the network's length.
std::int64_t samples_of_tokens(const ConfigNode& config, const ConfigNode& dataset, const std::filesystem::path& data) {
  const ConfigNode node = dataset.at("tokens");
  const double tokens = node.as_double(Range{1, 1e18});
  if (dataset.has("samples")) throw dataset.at("samples").error("tokens already say how much there is; leave out one");
  if (!config.has("model")) throw node.error("tokens are counted by a network that reads words; name a model");
  const Model model = load_model_once(config.at("model"), data);
  const std::int64_t each = tokens_per_sample(model);
  if (each == 0)
    throw node.error("network '" + model.name + "' reads no words, so that no tokens are counted; give samples");
  const double samples = std::ceil(tokens / static_cast<double>(each));
  if (samples > kMostOfAnything)
    throw node.error(fmt::format("{:.3g} samples are too many; give fewer tokens", samples));
  return static_cast<std::int64_t>(samples);
}

NetworkCorrection read_network(const ConfigNode& node) {
  const NetworkCorrection nominal;
  return {.efficiency = node.get("efficiency", nominal.efficiency, Range{1e-3, 1000}),
          .message_overhead = node.get("message_overhead", Seconds(nominal.message_overhead), Range{0, 1}).value};
}

CollectiveSettings read_collective(const ConfigNode& node, const SoftwareStack& stack) {
  CollectiveSettings settings{.algorithm = stack.collectives()};
  if (node.has("algorithm")) settings.algorithm = parse_name(node.at("algorithm"), parse_collective_algorithm);
  if (node.has("level")) settings.level = parse_name(node.at("level"), parse_collective_level);
  if (node.has("reduction_rate")) settings.gamma = 1 / node.at("reduction_rate").as_bytes_per_second(Range{1}).value;
  return settings;
}

std::optional<CachedReduction> read_cached_reduction(const ConfigNode& collective) {
  if (!collective.has("cached_reduction")) return std::nullopt;
  const ConfigNode node = collective.at("cached_reduction");
  if (!collective.has("reduction_rate"))
    throw node.error("reductions of any size are free without a reduction_rate; give that too");
  return CachedReduction{node.at("up_to").as_bytes(Range{1, 1e15}),
                         1 / node.at("rate").as_bytes_per_second(Range{1}).value};
}

/// Collectives with measured times. Settings that would have no effect on any of them are mistakes.
std::vector<MeasuredCollectives> read_calibrations(const ConfigNode& node, const std::filesystem::path& data) {
  if (!node.is_map() || !node.has("calibration")) return {};
  std::vector<MeasuredCollectives> out = read_measured_collectives(node.at("calibration"), data);
  if (out.front().scope() != CollectiveScope::everywhere || !out.front().has_collectives()) return out;
  if (node.has("reduction_rate"))
    throw node.at("reduction_rate")
        .error("measured times contain the reduction; leave reduction_rate or calibration out");
  if (!node.has("level")) return out;
  const CollectiveLevel level = parse_name(node.at("level"), parse_collective_level);
  if (level == CollectiveLevel::message || level == CollectiveLevel::flow)
    throw node.at("level").error(
        "nothing of a collective with a measured time is simulated; leave level or calibration out");
  return out;
}

Shards read_shards(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word == "static") return Shards::fixed;
  if (word == "stealing") return Shards::stealing;
  throw node.error("unknown shards '" + word + "'" + name_hint(word, {"static", "stealing"}));
}

/// Refuses a common pool of steps where workers wait for each other; only the strategy's graph tells.
void check_shards(const ScenarioSetup& setup, const ConfigNode& shards) {
  for (const PhaseSettings& phase : setup.phases)
    if (!setup.compile(setup.context(phase)).graph.ranks_are_independent())
      throw shards.error("workers of strategy " + setup.strategy_name +
                         " wait for each other, so none can take over another's steps; use static shards, or an "
                         "asynchronous strategy");
}

/// Refuses to offload what the strategy does not leave to the devices' own traces.
void check_offload(const ScenarioSetup& setup, const ConfigNode& node) {
  if (!setup.strategy->holds_its_trace())
    throw node.error("strategy " + setup.strategy_name + " places every tensor by itself; leave this out");
  if (!setup.memory.offload.optimizer) return;
  const auto serves = [](const Queue& queue) { return queue.role == QueueRole::server; };
  const auto has_servers = [&](const PhaseSettings& phase) {
    const bool is_first = &phase == &setup.phases.front();
    if (is_first && setup.first) return std::ranges::any_of(setup.first->step.graph.queues(), serves);
    return std::ranges::any_of(setup.compile(setup.context(phase)).graph.queues(), serves);
  };
  if (std::ranges::any_of(setup.phases, has_servers))
    throw node.error("strategy " + setup.strategy_name +
                     " updates parameters on servers or in the host's memory already; offload activations only");
}

/// A precision that all workers have a rate for.
Precision read_precision(const ConfigNode& node, const ScenarioSetup& setup) {
  const Precision precision = parse_name(node, parse_precision);
  for (const PhaseSettings& phase : setup.phases)
    for (const DeviceId worker : phase.workers) {
      const Device& device = setup.cluster.devices[static_cast<std::size_t>(worker)];
      if (device.matrix_rate(precision).value > 0) continue;
      throw node.error(
          fmt::format("device '{}' ({}) of platform '{}' has no {} rate; use precision: fp32, or add "
                      "epocast.peak_rate_{} to the platform file",
                      device.name, device.model, setup.cluster.name, to_string(precision), to_string(precision)));
    }
  return precision;
}

/// Measurements are of the device that `compute.device` names, else of the workers' kind that they name themselves,
/// else of the first worker's.
CostModelContext cost_model_context(const ScenarioSetup& setup, const ConfigNode& compute,
                                    const std::filesystem::path& data) {
  const auto device = [&](DeviceId id) { return &setup.cluster.devices[static_cast<std::size_t>(id)]; };
  CostModelContext context{data,
                           &setup.model,
                           device(setup.phases.front().workers.front()),
                           setup.optimizer,
                           setup.fused_updates,
                           setup.update_accesses,
                           setup.precision};
  if (compute.has("device")) {
    context.device = device(find_device(setup.cluster, compute.at("device")));
    return context;
  }
  for (const PhaseSettings& phase : setup.phases) {
    const DeviceKinds kinds(setup.cluster, phase.workers);
    for (const DeviceId example : kinds.examples()) context.others.push_back(device(example));
  }
  return context;
}

/// What the study names, or else is run with; constants that were fitted to steps come with no stack but their own.
SoftwareStack read_stack(const Scenario& scenario, const ConfigNode& study, const ScenarioSetup& setup,
                         const std::filesystem::path& data) {
  if (study.has("stack")) return load_stack(study.at("stack"), data);
  if (!scenario.usual_stack || setup.steps) return {};
  const std::string name = usual_stack(read_strategy(study), setup.cluster.devices.front());
  return load_stack(ConfigNode::load_text(name, "stack"), data);
}

}  // namespace

Registries builtin_registries() { return {builtin_strategies()}; }

ScenarioSetup read_scenario(const Scenario& scenario, const Registries& registries) {
  const std::filesystem::path data = data_directory();
  ScenarioSetup setup;
  const ConfigNode written = scenario.config();
  setup.steps = read_steps(written, data);
  written.at("study").as_string();
  written.get("description", "");
  const ConfigNode platform = required(
      written, "platform", "name a cluster, as in `platform: skylake_10gbe`; `epocast list platforms` shows them");
  setup.cluster = load_platform_once(without_running_costs(platform), data);
  const ConfigNode stated = setup.steps ? setup.steps->apply(written.without("steps")) : written;
  setup.stack = read_stack(scenario, stated, setup, data);
  const ConfigNode config = with_stack_defaults(stated.without("stack"), setup.stack, registries.strategies);
  for (const char* read : {"study", "description", "platform"})
    if (config.has(read)) config.at(read).mark_all_read();
  setup.costs = read_running_costs(config, platform);

  const ConfigNode strategy = read_strategy(config);
  // A strategy with a mesh is put together from parts, and needs no name.
  const bool composed = !strategy.has("name") && strategy.has("mesh");
  const ConfigNode named = composed ? strategy.at("mesh") : strategy.at("name");
  setup.strategy_name = composed ? "composition" : named.as_string();
  setup.strategy_place = named.where();
  setup.strategy = registries.strategies.make(setup.strategy_name, strategy, named);

  const ConfigNode dataset = child_or_empty(config, "dataset");
  // ImageNet-1K (ILSVRC 2012) training images.
  setup.samples = dataset.has("tokens") ? samples_of_tokens(config, dataset, data)
                                        : dataset.get("samples", std::int64_t{1281167}, Range{1, kMostOfAnything});
  if (dataset.has("shards")) setup.shards = read_shards(dataset.at("shards"));
  std::shared_ptr<const BatchDoubling> adaptive;
  setup.phases = read_phases(config, setup.cluster, *setup.strategy, setup.samples, adaptive);
  if (config.has("workers")) setup.booked = read_workers(config.at("workers"), setup.cluster).size();
  for (const PhaseSettings& phase : setup.phases) setup.booked = std::max(setup.booked, phase.workers.size());
  setup.network = read_network(child_or_empty(config, "network"));
  setup.collective = read_collective(child_or_empty(config, "collective"), setup.stack);
  setup.cached_reduction = read_cached_reduction(child_or_empty(config, "collective"));
  if (const ConfigNode node = child_or_empty(config, "collective"); node.has("rings"))
    setup.rings = RingSetting(node.at("rings"));
  if (config.has("collective")) setup.measured_collectives = read_calibrations(config.at("collective"), data);
  if (config.has("optimizer")) {
    const ConfigNode optimizer = map_or_name(config.at("optimizer"), "optimizer", "name");
    if (optimizer.has("name")) setup.optimizer = parse_name(optimizer.at("name"), parse_optimizer);
    setup.fused_updates = optimizer.get("fused", setup.fused_updates);
    if (optimizer.has("accesses"))
      setup.update_accesses = read_update_accesses(optimizer.at("accesses"), setup.optimizer);
    optimizer.check_all_read();
  }
  if (config.has("precision")) setup.precision = read_precision(config.at("precision"), setup);

  if (setup.strategy->needs_model() || config.has("model")) {
    setup.model = load_model_once(
        required(config, "model", "name a network, as in `model: vgg16`; `epocast list models` shows them"), data);
    if (dataset.has("lengths")) {
      setup.lengths.emplace(dataset.at("lengths"));
      setup.model = setup.lengths->packed(std::move(setup.model));
    }
    ConfigNode compute = read_compute(config);
    if (setup.steps) compute = setup.steps->computing(compute, range_of(setup));
    setup.cost_model = make_cost_model(compute, cost_model_context(setup, compute, data));
    setup.launches = read_launches(compute);
    setup.computes_updates = !compute.has("step_time") && compute.get("cost_model", "roofline") != "measured";
    compute.check_all_read();
    const ConfigNode memory = child_or_empty(config, "memory");
    setup.memory = read_memory_settings(memory);
    if (memory.has("recompute")) {
      const PhaseSettings& phase = setup.phases.front();
      check_recompute(setup.memory, setup.trace(phase.workers.front(), 1, {}), memory.at("recompute"));
    }
    memory.check_all_read();
  }
  std::vector<std::vector<DeviceId>> workers;
  for (const PhaseSettings& phase : setup.phases) workers.push_back(phase.workers);
  setup.irregularity = read_irregularity(config, setup.cluster, workers);
  if (config.has("learning") && !config.at("learning").is_null())
    setup.learning = read_learning(config.at("learning"), setup.strategy_name, strategy, setup.phases, adaptive);
  if (adaptive && !setup.learning)
    throw adaptive->place.at("every").error(
        "learning decides when the batch doubles, but the study has no `learning` block; add one or give epochs");
  config.check_all_read();
  if (config.has("collective")) check_collectives(setup, config.at("collective"));
  for (const PhaseSettings& phase : setup.phases)
    if (setup.rings.is_count()) setup.rings.check(setup.compile(phase).graph);
  if ((setup.stack.spread() > 0 || setup.lengths) && setup.strategy->needs_model()) {
    CompiledPhase first;
    first.step =
        setup.compile(setup.phases.front(), &first.asked, {.shorten_from = ScenarioSetup::kManyPasses, .patience = 0});
    setup.in_step = !first.step.graph.ranks_are_independent();
    if (setup.in_step) setup.first = std::move(first);
  }
  if (setup.memory.offload.any()) check_offload(setup, config.at("memory").at("offload"));
  if (setup.shards == Shards::stealing) check_shards(setup, dataset.at("shards"));
  return setup;
}

}  // namespace epocast
