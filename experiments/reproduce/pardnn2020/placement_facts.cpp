#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>

#include "experiments/reproduce/pardnn2020/programs.hpp"
#include "experiments/reproduce/pardnn2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "strategies/placement/list_placement.hpp"

namespace epocast::pardnn2020 {
namespace {

constexpr int kDeviceCounts[] = {4, 8, 16};
constexpr double kSearchNodes = 5e5;  // a quarter of the default: ten models, three machines

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What the placements of all models on 4, 8 and 16 devices come to, each at the batch of Table 6.1.
struct Comparison {
  std::vector<double> round_robin;              ///< its makespan over ParDNN's
  std::vector<double> linear_clustering;        ///< ParDNN's makespan over its; both run the earliest start first
  std::vector<double> literal_gain, kept_gain;  ///< of the refinement over the mapping
  std::vector<double> moved;                    ///< part of nodes, where memory was too small; as written
  double longest = 0;                           ///< s, memory included
  std::map<std::string, double> first_step, linear_seconds;  ///< s by model, the longest
};

Ticks earliest_start_first(const PlacementGraph& graph, const PlacementMachine& machine, const Placement& placement,
                           const std::vector<Ticks>& priority) {
  return replay(graph, machine, placement, {.order = QueueOrder::priority, .priority = priority}).makespan;
}

void compare(Comparison& out, const Program& program, int devices) {
  const NamedGraph named = training_graph(program, printed_batch(program.model, devices));
  const PlacementGraph& graph = named.graph;
  const PlacementMachine machine = dgx2(devices);
  const ReplayOptions contended{.links = Links::copy_engines};
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  const Levels levels = compute_levels(graph, transfer);
  std::vector<PlacementStage> stages, literal;
  const double first_step =
      seconds_of([&] { stages = pardnn(graph, machine, {.replay = contended, .search_nodes = kSearchNodes}); });
  literal = pardnn(graph, machine, {.literal = true, .replay = contended});
  double& slowest_step = out.first_step[program.model];
  slowest_step = std::max(slowest_step, first_step);
  const auto ratio = [](Ticks a, Ticks b) { return static_cast<double>(a) / static_cast<double>(b); };
  out.round_robin.push_back(ratio(judge(graph, machine, contended, "", round_robin(graph, transfer, devices)).makespan,
                                  stages.back().makespan));
  out.literal_gain.push_back(ratio(literal.front().makespan, literal.back().makespan) - 1);
  Ticks kept = stages.front().makespan;
  for (const PlacementStage& stage : stages)
    if (stage.name != "search") kept = stage.makespan;
  out.kept_gain.push_back(ratio(stages.front().makespan, kept) - 1);

  Placement linear;
  double& slowest_linear = out.linear_seconds[program.model];
  slowest_linear = std::max(slowest_linear, seconds_of([&] {
                              linear =
                                  guided_load_balancing(graph, linear_clustering(graph, transfer), levels.top, devices);
                              unite_groups(graph, transfer, devices, linear);
                            }));
  const std::vector<PlacementStage> by_start =
      pardnn(graph, machine,
             {.replay = {.order = QueueOrder::priority, .priority = levels.bottom}, .search_nodes = kSearchNodes});
  out.linear_clustering.push_back(
      ratio(by_start.back().makespan, earliest_start_first(graph, machine, linear, levels.bottom)));

  const PlacementMachine limited = dgx2(devices, (1 - kReserve) * kDeviceMemory);
  out.longest = std::max(
      out.longest, seconds_of([&] { pardnn(graph, limited, {.replay = contended, .search_nodes = kSearchNodes}); }));
  const PlacementStage fitted = pardnn(graph, limited, {.literal = true, .replay = contended}).back();
  if (fitted.fits && fitted.moved_nodes > 0)
    out.moved.push_back(static_cast<double>(fitted.moved_nodes) / static_cast<double>(graph.size()));
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

std::vector<TargetRow> run_placement_facts(const TargetContext&) {
  Comparison c;
  for (const Program& program : programs())
    for (const int devices : kDeviceCounts) compare(c, program, devices);
  const PublishedTable table = PublishedTable::load(
      data_directory() / "experiments" / "reproduce" / "pardnn2020" / "placement_facts.csv", {"fact"});
  std::vector<TargetRow> rows;
  for (const PublishedCell& cell : table.cells()) {
    const std::string& fact = cell.keys[0];
    TargetRow row{.row = fact, .quantity = cell.quantity, .unit = cell.unit, .published = cell.value};
    row.role = Role::bound;
    if (fact == "round robin over pardnn") {
      row.simulated = mean(c.round_robin);
      row.role = Role::stated;
      row.factor = 1.3;
    } else if (fact == "pardnn over linear clustering") {
      row.simulated = mean(c.linear_clustering);
      row.tolerance = 0.01;
    } else if (fact == "mean over all") {
      row.simulated = 100 * mean(c.moved);
      row.role = Role::stated;
      row.factor = 2;
    } else if (fact == "largest refinement gain") {
      row.simulated = 100 * largest(c.literal_gain);
      row.role = Role::stated;
      row.factor = 2;
    } else if (fact == "largest over all") {
      row.simulated = c.longest;
    } else {
      const std::string model = fact.substr(0, fact.find(' '));
      row.simulated = fact.ends_with("step 1") ? c.first_step.at(model) : c.linear_seconds.at(model);
    }
    rows.push_back(std::move(row));
  }
  const auto ours = [&](const char* row, double simulated) {
    rows.push_back({.row = row,
                    .quantity = "throughput gain",
                    .unit = "%",
                    .published = std::nullopt,
                    .simulated = 100 * simulated,
                    .role = Role::stated});
  };
  ours("mean refinement gain, as written", mean(c.literal_gain));
  ours("smallest refinement gain, as written", -largest([&] {
         std::vector<double> minus;
         for (const double gain : c.literal_gain) minus.push_back(-gain);
         return minus;
       }()));
  ours("mean refinement gain, steps kept if they help", mean(c.kept_gain));
  ours("largest refinement gain, steps kept if they help", largest(c.kept_gain));
  return rows;
}

}  // namespace

Target placement_facts() {
  return {
      .paper = "pardnn2020",
      .table = "placements",
      .description = "what the text says of placements on 4, 8 and 16 devices",
      .mape_bound = {},
      .run = run_placement_facts,
      .known_misses = {{"mean over all: moved nodes", 79,
                        "at the printed batches our placements overflow by less; where nothing fits in the end 7 to "
                        "17 % move"}}};
}

}  // namespace epocast::pardnn2020
