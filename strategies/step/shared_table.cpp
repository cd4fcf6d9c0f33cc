#include "strategies/step/shared_table.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "strategies/step/step_graph.hpp"

namespace epocast {

std::vector<SharedTable> shared_tables(const Model& model, const std::function<std::size_t(std::size_t)>& stage_of) {
  std::vector<SharedTable> tables;
  std::set<std::pair<std::size_t, std::size_t>> copied;  // tables, and stages that have them
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    std::size_t owner = l;
    while (model.layers[owner].tied_to >= 0) owner = static_cast<std::size_t>(model.layers[owner].tied_to);
    if (owner == l || stage_of(owner) == stage_of(l) || !copied.emplace(owner, stage_of(l)).second) continue;
    const auto known = std::ranges::find(tables, owner, &SharedTable::layer);
    if (known == tables.end())
      tables.push_back({owner, {l}});
    else
      known->readers.push_back(l);
  }
  return tables;
}

Model with_tables(Model model, const std::vector<SharedTable>& tables) {
  for (const SharedTable& shared : tables)
    for (const std::size_t reader : shared.readers) {
      const Layer& table = model.layers[shared.layer];
      Layer& copy = model.layers[reader];
      copy.parameters.insert(copy.parameters.begin(), table.parameters.begin(), table.parameters.end());
      copy.frozen = copy.frozen || table.frozen;
      copy.tied_to = -1;
    }
  return model;
}

WorkloadTrace with_tables(WorkloadTrace trace, const std::vector<SharedTable>& tables) {
  for (const SharedTable& shared : tables)
    for (const std::size_t reader : shared.readers) {
      const LayerTrace& table = trace.layers[shared.layer];
      LayerTrace& copy = trace.layers[reader];
      copy.gradients.insert(copy.gradients.begin(), table.gradients.begin(), table.gradients.end());
      copy.parameters += table.parameters;
      copy.frozen += table.frozen;
      copy.times.update += table.times.update;
    }
  return trace;
}

TraceSource traces_with_tables(const StrategyContext& context, const std::vector<SharedTable>& tables) {
  return {context.kinds,
          [made = context.trace, &cluster = context.cluster, tables](std::int64_t batch, DeviceId device) {
            const auto alone = std::make_shared<const DeviceKinds>(cluster, std::vector{device});
            return with_tables(made(batch, alone), tables);
          }};
}

std::map<const WorkloadTrace*, WorkloadTrace> share_tables(StepPlan& plan, const std::vector<std::size_t>& boundaries,
                                                           StrategyContext& context) {
  std::map<const WorkloadTrace*, WorkloadTrace> traces;
  if (context.model == nullptr || plan.stages() < 2) return traces;
  plan.tables = shared_tables(*context.model, [&](std::size_t layer) {
    const auto chunk = static_cast<std::size_t>(std::ranges::upper_bound(boundaries, layer) - boundaries.begin()) - 1;
    return chunk % static_cast<std::size_t>(plan.stages());
  });
  if (plan.tables.empty()) return traces;
  for (const WorkloadTrace*& trace : plan.traces) {
    const auto [at, is_new] = traces.try_emplace(trace);
    if (is_new) at->second = with_tables(*trace, plan.tables);
    trace = &at->second;
  }
  context.trace = traces_with_tables(context, plan.tables);
  return traces;
}

}  // namespace epocast
