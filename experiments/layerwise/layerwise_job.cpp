#include "experiments/layerwise/layerwise_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "experiments/layerwise/link_probe.hpp"
#include "sim/executor.hpp"
#include "strategies/layerwise.hpp"
#include "strategies/layerwise/stage_search.hpp"
#include "strategies/partitioners/contiguous_split.hpp"
#include "strategies/register.hpp"

namespace epocast {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Ranks from 1, equal values the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    out.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1) / 2);
  }
  return out;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 1;
}

/// The study's own settings of the strategy, without degrees; those of another strategy say nothing.
ConfigNode strategy_options(const ConfigNode& config) {
  const ConfigNode plain = ConfigNode::load_text("{name: layerwise}", "strategy");
  if (!config.has("strategy")) return plain;
  ConfigNode strategy = config.at("strategy");
  if (strategy_of_body(strategy) == "layerwise" && strategy.at("body").is_map()) {
    const ConfigNode composition = strategy;
    strategy = composition.at("body");
    if (composition.has("schedule")) strategy = strategy.with("schedule", composition.at("schedule"));
  }
  if (!strategy.is_map() || !strategy.has("name") || strategy.at("name").as_string() != "layerwise") return plain;
  ConfigNode out = strategy;
  for (const char* key : {"configuration", "rest", "bandwidth", "node_bandwidth", "dimensions", "stages"})
    out = out.without(key);
  return out;
}

/// The strategy's block of a study that runs the degrees found.
std::string layerwise_text(const LayerwiseOutcome& found, const ConfigNode& options) {
  std::string out = "strategy:\n";
  for (const std::string& key : options.keys())
    if (key != "stages" && key != "schedule") out += fmt::format("  {}: {}\n", key, options.at(key).flow_text());
  if (found.micro_batches > 1) {
    const std::string name = options.has("schedule") && options.at("schedule").has("name")
                                 ? options.at("schedule").at("name").as_string()
                                 : "1f1b";
    out += fmt::format("  schedule: {{name: {}, micro_batches: {}}}\n", name, found.micro_batches);
  }
  if (found.first_operators.size() > 1) {
    out += fmt::format("  stages:\n    - {{workers: {}}}\n", found.workers_of_stage);
    for (std::size_t s = 1; s < found.first_operators.size(); ++s)
      out += fmt::format("    - {{from: {}, workers: {}}}\n", found.operators[found.first_operators[s]],
                         found.workers_of_stage);
  }
  out += "  configuration:\n";
  for (std::size_t op = 0; op < found.operators.size(); ++op)
    out += fmt::format("    {}: {}\n", found.operators[op], found.degrees[op].text());
  return out;
}

/// Tables of a micro-batch on the workers of one stage.
struct Level {
  CostTables tables;
  StageRequest request;
};

/// A global configuration by its level's tables.
struct StagedDegrees {
  const Level* level = nullptr;
  std::vector<std::size_t> first_operators, choice;
  friend auto operator<=>(const StagedDegrees&, const StagedDegrees&) = default;
};

class Job {
 public:
  Job(const ScenarioSetup& setup, const Layerwise& strategy, SimEngine& engine, const LayerwiseRequest& request)
      : setup_(setup),
        strategy_(strategy),
        engine_(engine),
        request_(request),
        phase_(setup.phases.front()),
        context_(setup.context(phase_)),
        network_(Layerwise::network_of(context_, context_.trace(context_.worker_batch()))),
        times_(context_, *network_),
        links_(probe_links(engine, setup.cluster, phase_.workers)),
        value_bytes_(bytes_per_value(times_.whole().precision)) {}

  /// Degrees by equation 1 for each number of stages and micro-batches, and rules to compare with.
  void search(LayerwiseOutcome& out) {
    out.links = links_;
    for (const LayerOperator& op : network_->operators()) out.operators.push_back(op.name);
    for (const int stages : request_.stages)
      for (const int micro_batches : micro_batches_of(stages)) {
        const double start = processor_seconds();
        const Level& level = make_level(stages, micro_batches);
        const double built = processor_seconds();
        StagedChoice found = search_stages(*network_, level.tables, level.request);
        out.table_seconds += built - start;
        out.search_seconds += processor_seconds() - built;
        for (const OperatorCosts& costs : level.tables.operators)
          out.configurations = std::max(out.configurations, costs.configurations.size());
        add(with_shape("equation 1", level), {&level, found.first_operators, found.choice});
        if (stages > 1) continue;
        add_rule(level, "image", [&](std::size_t) { return image_degrees(phase_.workers.size()); });
        add_rule(level, "one weird trick",
                 [&](std::size_t op) { return one_weird_trick_degrees(*network_, op, phase_.workers.size()); });
      }
  }

  /// Plans of Megatron-LM on as many stages and micro-batches, where the network can be divided like that; the best for
  /// each is proposed.
  void add_experts(const Scenario& scenario, const Registries& registries) {
    for (const std::unique_ptr<Level>& level : levels_) {
      const std::size_t before = tried_.size();
      for (int tensor = 1; tensor <= static_cast<int>(level->request.workers); tensor *= 2)
        for (const bool positions : {false, true}) {
          if (level->request.workers % static_cast<std::size_t>(tensor) != 0 || (positions && tensor == 1)) continue;
          add_expert(
              fmt::format("{{name: megatron, pipeline: {}, tensor: {}{}, micro_batches: {}}}", level->request.stages,
                          tensor, positions ? ", sequence_parallel: true" : "", level->request.micro_batches),
              scenario, registries);
        }
      const auto first = tried_.begin() + static_cast<std::ptrdiff_t>(before);
      const auto rank = [](const Tried& of) { return std::pair(!of.shown.fits, of.shown.simulated); };
      if (first != tried_.end()) std::ranges::min_element(first, tried_.end(), {}, rank)->shown.proposed = true;
    }
  }

  void refine(int rounds) {
    for (int round = 0; round < rounds && refine_once(); ++round) {
    }
  }

  void finish(LayerwiseOutcome& out, const ConfigNode& options) const {
    for (const Tried& each : tried_) out.candidates.push_back(each.shown);
    const Tried& found = tried_[best(/*with_experts=*/false)];
    out.best = best(/*with_experts=*/true);
    out.first_operators = found.degrees->first_operators;
    out.micro_batches = found.degrees->level->request.micro_batches;
    out.workers_of_stage = found.degrees->level->request.workers;
    out.choices = explain_choices(without_crossing(*found.degrees), found.degrees->choice);
    for (const OperatorChoice& made : out.choices) out.degrees.push_back(made.degrees);
    out.strategy = tried_[out.best].expert.empty() ? layerwise_text(out, options)
                                                   : fmt::format("strategy: {}\n", tried_[out.best].expert);
    std::vector<double> costs, simulated;
    for (const LayerwiseCandidate& candidate : out.candidates) {
      if (!candidate.cost) continue;
      costs.push_back(*candidate.cost);
      simulated.push_back(candidate.simulated);
    }
    out.rank_correlation = correlation(ranks(costs), ranks(simulated));
  }

 private:
  /// A plan that was simulated: degrees, or else the strategy of an expert.
  struct Tried {
    LayerwiseCandidate shown;
    std::optional<StagedDegrees> degrees;
    std::string expert;
  };

  void add_expert(const std::string& strategy, const Scenario& scenario, const Registries& registries) {
    try {
      Scenario expert = scenario;
      expert.settings.emplace_back("strategy", ConfigNode::load_text(strategy, "strategy"));
      const ScenarioSetup setup = read_scenario(expert, registries);
      Tried made{simulate(setup.compile(setup.phases.front()), strategy.substr(7, strategy.size() - 8), std::nullopt),
                 std::nullopt, strategy};
      made.shown.proposed = false;
      tried_.push_back(std::move(made));
    } catch (const ConfigError&) {  // heads or samples do not divide
    }
  }

  double memory_limit() const {
    double least = std::numeric_limits<double>::infinity();
    for (const DeviceId worker : phase_.workers) {
      const Bytes memory = setup_.cluster.devices[static_cast<std::size_t>(worker)].memory;
      least = std::min(least, (memory * (1 - setup_.memory.reserve_share) - setup_.memory.reserve).value);
    }
    return least;
  }

  /// Those asked for; else the study's with one stage, and with several the most of four to one for each that divide
  /// the batch.
  std::vector<int> micro_batches_of(int stages) const {
    if (!request_.micro_batches.empty()) return request_.micro_batches;
    const int own = strategy_.micro_batches();
    if (stages == 1 || own > 1) return {own};
    for (int each = 4; each > 1; --each)
      if (phase_.global_batch % (each * stages) == 0) return {each * stages};
    return {phase_.global_batch % stages == 0 ? stages : 1};
  }

  /// Throws ConfigError if batch or workers cannot be divided like that.
  const Level& make_level(int stages, int micro_batches) {
    const std::size_t workers = phase_.workers.size();
    if (workers % static_cast<std::size_t>(stages) != 0)
      throw ConfigError(fmt::format("--stages: {} stages cannot have the same number of {} workers", stages, workers));
    if (phase_.global_batch % micro_batches != 0)
      throw ConfigError(
          fmt::format("--micro-batches: {} do not divide a batch of {}", micro_batches, phase_.global_batch));
    CostSettings settings = strategy_.cost_settings();
    settings.dimensions = request_.dimensions;
    settings.links = links_;
    settings.micro_batches = micro_batches;
    const Precision precision = times_.whole().precision;
    StageRequest request{.stages = stages,
                         .workers = workers / static_cast<std::size_t>(stages),
                         .micro_batches = micro_batches,
                         .schedule = strategy_.schedule(),
                         .samples = phase_.global_batch / micro_batches,
                         .value_bytes = value_bytes_,
                         .between = links_.node_of.empty() ? links_.device : links_.node,
                         .memory_limit = memory_limit()};
    if (!settings.links.node_of.empty()) {  // of the first stage's workers; the others are taken to be as many a node
      settings.links.node_of.resize(request.workers);
      if (std::ranges::count(settings.links.node_of, settings.links.node_of.front()) ==
          static_cast<std::ptrdiff_t>(request.workers))
        settings.links.node_of.clear();
    }
    CostTables tables = cost_tables(*network_, times_, request.samples, request.workers, value_bytes_,
                                    optimizer_bytes_per_value(setup_.optimizer, precision), settings);
    return *levels_.emplace_back(std::make_unique<Level>(Level{std::move(tables), request}));
  }

  /// "equation 1, 4 stages x 16 micro-batches".
  static std::string with_shape(const std::string& name, const Level& level) {
    const StageRequest& of = level.request;
    if (of.stages == 1 && of.micro_batches == 1) return name;
    return fmt::format("{}, {} stage{} x {} micro-batch{}", name, of.stages, of.stages == 1 ? "" : "s",
                       of.micro_batches, of.micro_batches == 1 ? "" : "es");
  }

  LayerwiseCandidate simulate(TrainingStep step, std::string name, std::optional<double> cost) {
    ExecutionOptions how = execution_options(setup_, phase_, setup_.irregularity.seeds.front(), 0);
    how.iterations = phase_.iterations;
    const ExecutionResult result = execute(step.graph, setup_.cluster, engine_, how);
    LayerwiseCandidate made{std::move(name), cost, result.iteration, result.metrics.bytes};
    for (const DeviceMemory& memory : step.memory)
      for (const DeviceId device : memory.devices)
        made.fits &= memory.use.total() <= setup_.cluster.devices[static_cast<std::size_t>(device)].memory;
    return made;
  }

  /// Simulates degrees that have not been simulated yet. Returns whether they are the best so far.
  bool add(const std::string& name, const StagedDegrees& of, bool proposed = true) {
    if (!known_.insert(of).second) return false;
    std::vector<Configuration> configurations;
    for (std::size_t op = 0; op < of.choice.size(); ++op)
      configurations.push_back({of.level->tables.operators[op].configurations[of.choice[op]], {}});
    LayerwisePipeline pipeline{
        .stages = {}, .schedule = of.level->request.schedule, .micro_batches = of.level->request.micro_batches};
    for (const std::size_t first : of.first_operators) pipeline.stages.push_back({first, of.level->request.workers});
    const LayerwisePlan plan = make_plan(network_, configurations, phase_.global_batch, value_bytes_, pipeline,
                                         strategy_.cost_settings().places);
    TrainingStep step = layerwise_step(context_, plan, times_, strategy_.replay_settings());
    step.graph.tune_collectives([this](Collective& work, const Group& group) { setup_.tune(work, group); });
    setup_.memory.apply(step, setup_.cluster);
    const double cost = step_cost(*network_, of.level->tables, of.level->request, of.first_operators, of.choice);
    tried_.push_back({simulate(std::move(step), name, cost), of, ""});
    tried_.back().shown.proposed = proposed;
    return best(/*with_experts=*/false) + 1 == tried_.size();
  }

  template <class Of>
  void add_rule(const Level& level, const char* name, Of of) {
    std::vector<std::size_t> choice;
    for (std::size_t op = 0; op < network_->size(); ++op) {
      const auto& all = level.tables.operators[op].configurations;
      const auto found = std::ranges::find(all, of(op));
      if (found == all.end()) return;  // it cannot be divided like that, or the search may not
      choice.push_back(static_cast<std::size_t>(found - all.begin()));
    }
    add(with_shape(name, level), {&level, {0}, choice});
  }

  /// REQUIRES: degrees have been tried.
  std::size_t best(bool with_experts) const {
    std::size_t out = 0;
    const auto rank = [&](std::size_t t) {
      const Tried& of = tried_[t];
      return std::tuple(!of.degrees && !with_experts, !of.shown.fits, of.shown.simulated);
    };
    for (std::size_t t = 1; t < tried_.size(); ++t)
      if (rank(t) < rank(out)) out = t;
    return out;
  }

  /// The tables without edges between stages, whose cost their ends' degrees do not change.
  static CostTables without_crossing(const StagedDegrees& of) {
    CostTables out = of.level->tables;
    const auto stage = [&](std::size_t op) {
      return std::ranges::upper_bound(of.first_operators, op) - of.first_operators.begin();
    };
    std::erase_if(out.graph.edges, [&](const CostGraph::Edge& edge) { return stage(edge.from) != stage(edge.to); });
    return out;
  }

  /// Changes single operators of the best so far to their runner-up: those first that have the most to gain from what
  /// equation 1 does not see. Returns whether something got better.
  bool refine_once() {
    const StagedDegrees start = *tried_[best(/*with_experts=*/false)].degrees;
    const std::vector<OperatorChoice> choices = explain_choices(without_crossing(start), start.choice);
    std::vector<std::size_t> order(choices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t op) { return choices[op].runner_up_more; });
    constexpr std::size_t kMostTrials = 24;
    bool better = false;
    StagedDegrees now = start;
    for (std::size_t i = 0; i < std::min(kMostTrials, order.size()); ++i) {
      const std::size_t op = order[i];
      StagedDegrees trial = now;
      trial.choice[op] = start.level->tables.index_of(op, choices[op].runner_up);
      if (!add(fmt::format("{} {}", network_->at(op).name, choices[op].runner_up.text()), trial, /*proposed=*/false))
        continue;
      now = trial;
      better = true;
    }
    return better;
  }

  const ScenarioSetup& setup_;
  const Layerwise& strategy_;
  SimEngine& engine_;
  const LayerwiseRequest& request_;
  const PhaseSettings& phase_;
  StrategyContext context_;
  std::shared_ptr<const OperatorNetwork> network_;
  TileTimes times_;
  LinkRates links_;
  double value_bytes_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::set<StagedDegrees> known_;
  std::vector<Tried> tried_;
};

}  // namespace

LayerwiseOutcome search_layerwise(const Scenario& scenario, const Registries& registries,
                                  const LayerwiseRequest& request) {
  const ConfigNode config = scenario.config();
  const ConfigNode options = strategy_options(config);
  Scenario layerwise = scenario;
  layerwise.settings.emplace_back("strategy", options);
  const ScenarioSetup setup = read_scenario(layerwise, registries);
  if (setup.phases.size() > 1)
    throw ConfigError("a study with a schedule of several phases has no single best configuration; leave it out");
  const auto* strategy = dynamic_cast<const Layerwise*>(setup.strategy.get());
  if (strategy == nullptr) throw ConfigError("the strategy 'layerwise' is another one in this program");
  SimEngine engine(setup.cluster, setup.network);
  LayerwiseOutcome out;
  out.model = setup.model.name;
  out.workers = setup.phases.front().workers.size();
  out.batch = setup.phases.front().global_batch;
  for (const std::string& key : config.keys())
    if (key != "strategy" && key != "sweep") out.study += fmt::format("{}: {}\n", key, config.at(key).flow_text());
  try {
    Job job(setup, *strategy, engine, request);
    job.search(out);
    if (request.stages != std::vector{1}) job.add_experts(scenario, registries);
    job.refine(request.rounds);
    job.finish(out, options);
  } catch (const SearchTooLarge& problem) {
    throw ConfigError(setup.model.name + ": " + problem.what());
  } catch (const SplitError& problem) {
    throw ConfigError(fmt::format("--stages: {}: {}", setup.model.name, problem.what()));
  }
  return out;
}

std::string explain(const LayerwiseOutcome& outcome) {
  std::string out;
  for (std::size_t op = 0; op < outcome.operators.size(); ++op) {
    const OperatorChoice& made = outcome.choices[op];
    out += fmt::format("  {} {}: computing {}, gradients {}, transfers {}", outcome.operators[op], made.degrees.text(),
                       to_string(Seconds(made.compute)), to_string(Seconds(made.update)),
                       to_string(Seconds(made.transfer)));
    if (made.runner_up == made.degrees) {
      out += "; nothing else is possible\n";
      continue;
    }
    const auto change = [](double more) {
      return fmt::format("{}{}", more < 0 ? "-" : "+", to_string(Seconds(std::abs(more))));
    };
    out += fmt::format("; next {} would cost {}: computing {}, gradients {}, transfers {}\n", made.runner_up.text(),
                       change(made.runner_up_more), change(made.runner_up_compute - made.compute),
                       change(made.runner_up_update - made.update), change(made.runner_up_transfer - made.transfer));
  }
  return out;
}

}  // namespace epocast
