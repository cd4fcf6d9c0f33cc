#include "strategies/step/shared_table.hpp"

#include <algorithm>

namespace epocast {
namespace {

int chunk_of(const StepPlan& plan, std::size_t layer) {
  int c = 0;
  while (layer >= plan.chunk(c).last) ++c;
  return c;
}

}  // namespace

std::vector<SharedTable> shared_tables(const StepPlan& plan, const Model* model) {
  std::vector<SharedTable> tables;
  if (model == nullptr || !plan.replicas_are_equal()) return tables;
  for (std::size_t l = 0; l < model->layers.size(); ++l) {
    if (model->layers[l].tied_to < 0) continue;
    const auto layer = static_cast<std::size_t>(model->layers[l].tied_to);
    const SharedTable table{chunk_of(plan, layer), chunk_of(plan, l), layer};
    const int stage = plan.chunk(table.copy).stage;
    const bool is_known = std::ranges::any_of(tables, [&](const SharedTable& other) {
      return other.layer == layer && plan.chunk(other.copy).stage == stage;
    });
    if (plan.chunk(table.original).stage != stage && !is_known) tables.push_back(table);
  }
  return tables;
}

void count_shared_tables(const StepPlan& plan, const StrategyContext& context, std::vector<DeviceMemory>& memory) {
  const double state = optimizer_share(context.optimizer, *plan.traces.front());
  for (const auto& [original, copy, layer] : shared_tables(plan, context.model)) {
    const WorkloadTrace& trace = plan.trace(plan.chunk(original).stage);
    const Bytes table = trace.layers[layer].parameters;
    MemoryUse& use = memory[static_cast<std::size_t>(plan.chunk(copy).stage)].use;
    use.parameters += table + trace.layers[layer].frozen;
    use.gradients += table;
    use.state_of(trace) += table * state;
  }
}

}  // namespace epocast
