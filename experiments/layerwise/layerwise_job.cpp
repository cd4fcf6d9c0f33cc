#include "experiments/layerwise/layerwise_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <set>

#include "sim/executor.hpp"
#include "strategies/layerwise.hpp"

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
  const ConfigNode strategy = config.at("strategy");
  if (!strategy.is_map() || !strategy.has("name") || strategy.at("name").as_string() != "layerwise") return plain;
  ConfigNode out = strategy;
  for (const char* key : {"configuration", "rest", "bandwidth", "node_bandwidth", "dimensions"}) out = out.without(key);
  return out;
}

class Job {
 public:
  Job(const ScenarioSetup& setup, const Layerwise& strategy, SimEngine& engine, const LayerwiseRequest& request)
      : setup_(setup),
        strategy_(strategy),
        engine_(engine),
        phase_(setup.phases.front()),
        context_(setup.context(phase_)),
        network_(Layerwise::network_of(context_, context_.trace(context_.worker_batch()))),
        times_(context_, *network_),
        settings_(strategy.cost_settings()) {
    settings_.dimensions = request.dimensions;
    settings_.links = probe_links(engine, setup.cluster, phase_.workers);
  }

  void run(const LayerwiseRequest& request, LayerwiseOutcome& out) {
    const double start = processor_seconds();
    const Precision precision = times_.whole().precision;
    tables_ = cost_tables(*network_, times_, phase_.global_batch, phase_.workers.size(), bytes_per_value(precision),
                          optimizer_bytes_per_value(setup_.optimizer, precision), settings_);
    const double built = processor_seconds();
    const SearchResult found = search(tables_, memory_limit());
    out.table_seconds = built - start;
    out.search_seconds = processor_seconds() - built;
    out.left_by_paper = found.left_by_paper;
    out.enumerated = found.enumerated;
    out.links = settings_.links;
    for (const LayerOperator& op : network_->operators()) out.operators.push_back(op.name);
    for (const OperatorCosts& costs : tables_.operators)
      out.configurations = std::max(out.configurations, costs.configurations.size());

    std::vector<std::size_t> choice;
    for (std::size_t op = 0; op < network_->size(); ++op)
      choice.push_back(tables_.index_of(op, found.operators[op].degrees));
    add("equation 1", choice);
    add_rule("image", [&](std::size_t) { return image_degrees(phase_.workers.size()); });
    add_rule("one weird trick",
             [&](std::size_t op) { return one_weird_trick_degrees(*network_, op, phase_.workers.size()); });
    for (int round = 0; round < request.rounds && refine(); ++round) {
    }
    const std::size_t best = best_of();
    out.best = best;
    out.candidates = candidates_;
    out.choices = explain_choices(tables_, candidates_[best].choice);
    for (const OperatorChoice& made : out.choices) out.degrees.push_back(made.degrees);
    std::vector<double> costs, simulated;
    for (const LayerwiseCandidate& candidate : candidates_) {
      costs.push_back(candidate.cost);
      simulated.push_back(candidate.simulated);
    }
    out.rank_correlation = correlation(ranks(costs), ranks(simulated));
  }

 private:
  double memory_limit() const {
    double least = std::numeric_limits<double>::infinity();
    for (const DeviceId worker : phase_.workers) {
      const Bytes memory = setup_.cluster.devices[static_cast<std::size_t>(worker)].memory;
      least = std::min(least, (memory * (1 - setup_.memory.reserve_share) - setup_.memory.reserve).value);
    }
    return least;
  }

  /// Simulates a choice that has not been simulated yet. Returns whether it is the best so far.
  bool add(const std::string& name, const std::vector<std::size_t>& choice) {
    if (!known_.insert(choice).second) return false;
    std::vector<Configuration> configurations;
    for (std::size_t op = 0; op < choice.size(); ++op)
      configurations.push_back({tables_.operators[op].configurations[choice[op]], {}});
    const LayerwisePlan plan =
        make_plan(network_, configurations, phase_.global_batch, bytes_per_value(times_.whole().precision),
                  phase_.workers.size(), settings_.places);
    TrainingStep step = layerwise_step(context_, plan, times_, strategy_.replay_settings());
    step.graph.tune_collectives([this](Collective& work, const Group& group) { setup_.tune(work, group); });
    setup_.memory.apply(step, setup_.cluster);
    const ExecutionResult result = execute(step.graph, setup_.cluster, engine_, {.iterations = phase_.iterations});
    LayerwiseCandidate made{name, choice, tables_.graph.cost(choice), result.iteration, result.metrics.bytes};
    for (const DeviceMemory& memory : step.memory)
      for (const DeviceId device : memory.devices)
        made.fits &= memory.use.total() <= setup_.cluster.devices[static_cast<std::size_t>(device)].memory;
    candidates_.push_back(std::move(made));
    return best_of() + 1 == candidates_.size();
  }

  template <class Of>
  void add_rule(const char* name, Of of) {
    std::vector<std::size_t> choice;
    for (std::size_t op = 0; op < network_->size(); ++op) {
      const auto& all = tables_.operators[op].configurations;
      const auto found = std::ranges::find(all, of(op));
      if (found == all.end()) return;  // it cannot be divided like that, or the search may not
      choice.push_back(static_cast<std::size_t>(found - all.begin()));
    }
    add(name, choice);
  }

  std::size_t best_of() const {
    const auto better = [](const LayerwiseCandidate& a, const LayerwiseCandidate& b) {
      return std::pair(!a.fits, a.simulated) < std::pair(!b.fits, b.simulated);
    };
    return static_cast<std::size_t>(std::min_element(candidates_.begin(), candidates_.end(), better) -
                                    candidates_.begin());
  }

  /// Changes single operators of the best so far to their runner-up: those first that have the most to gain from what
  /// equation 1 does not see. Returns whether something got better.
  bool refine() {
    const std::vector<std::size_t> start = candidates_[best_of()].choice;
    const std::vector<OperatorChoice> choices = explain_choices(tables_, start);
    std::vector<std::size_t> order(choices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t op) { return choices[op].runner_up_more; });
    constexpr std::size_t kMost = 24;
    bool better = false;
    std::vector<std::size_t> now = start;
    for (std::size_t i = 0; i < std::min(kMost, order.size()); ++i) {
      const std::size_t op = order[i];
      std::vector<std::size_t> trial = now;
      trial[op] = tables_.index_of(op, choices[op].runner_up);
      if (!add(fmt::format("{} {}", network_->at(op).name, choices[op].runner_up.text()), trial)) continue;
      now = trial;
      better = true;
    }
    return better;
  }

  const ScenarioSetup& setup_;
  const Layerwise& strategy_;
  SimEngine& engine_;
  const PhaseSettings& phase_;
  StrategyContext context_;
  std::shared_ptr<const OperatorNetwork> network_;
  TileTimes times_;
  CostSettings settings_;
  CostTables tables_;
  std::set<std::vector<std::size_t>> known_;
  std::vector<LayerwiseCandidate> candidates_;
};

}  // namespace

LinkRates probe_links(SimEngine& engine, const Cluster& cluster, const std::vector<DeviceId>& workers) {
  LinkRates out;
  std::vector<int> hosts;
  for (const DeviceId worker : workers)
    hosts.push_back(engine.find_host(cluster.devices[static_cast<std::size_t>(worker)].name));
  const std::vector<int> nodes = node_numbers(cluster, workers);
  double inside = 0, outside = 0;  // of the slowest route; 0: there is none
  std::map<int, std::set<int>> shared;
  std::map<int, int> devices;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    ++devices[nodes[i]];
    for (std::size_t j = 0; j < hosts.size(); ++j) {
      if (i == j) continue;
      const Route& route = engine.route(hosts[i], hosts[j]);
      out.latency = std::max(out.latency, Seconds(route.latency));
      double& slowest = nodes[i] == nodes[j] ? inside : outside;
      slowest = slowest == 0 ? route.bandwidth : std::min(slowest, route.bandwidth);
      if (nodes[i] == nodes[j]) continue;
      const std::set<int> links(route.links.begin(), route.links.end());
      const auto [known, is_new] = shared.try_emplace(nodes[i], links);
      if (!is_new) std::erase_if(known->second, [&](int link) { return !links.contains(link); });
    }
  }
  if (inside == 0 || outside == 0) {  // one node, or one device on each
    out.device = BytesPerSecond(std::max({inside, outside, 1.0}));
    return out;
  }
  out.device = BytesPerSecond(inside);
  out.node_of = nodes;
  double node = std::numeric_limits<double>::infinity();
  for (const auto& [number, links] : shared) {
    double rate = outside * devices[number];
    for (const int link : links) rate = std::min(rate, engine.link_bandwidth(link));
    node = std::min(node, rate);
  }
  out.node = BytesPerSecond(node);
  return out;
}

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
  SimEngine engine(setup.cluster.platform_file.string(), setup.network);
  LayerwiseOutcome out{.model = setup.model.name,
                       .workers = setup.phases.front().workers.size(),
                       .batch = setup.phases.front().global_batch,
                       .operators = {},
                       .links = {},
                       .candidates = {},
                       .choices = {},
                       .degrees = {},
                       .study = config,
                       .strategy = options};
  try {
    Job(setup, *strategy, engine, request).run(request, out);
  } catch (const SearchTooLarge& problem) {
    throw ConfigError(setup.model.name + ": " + problem.what());
  }
  return out;
}

std::string LayerwiseOutcome::to_yaml() const {
  std::string out;
  for (const std::string& key : study.keys())
    if (key != "strategy" && key != "sweep") out += fmt::format("{}: {}\n", key, study.at(key).flow_text());
  out += "strategy:\n";
  for (const std::string& key : strategy.keys()) out += fmt::format("  {}: {}\n", key, strategy.at(key).flow_text());
  out += "  configuration:\n";
  for (std::size_t op = 0; op < operators.size(); ++op)
    out += fmt::format("    {}: {}\n", operators[op], degrees[op].text());
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
