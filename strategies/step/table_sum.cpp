#include "strategies/step/table_sum.hpp"

#include <algorithm>
#include <string>

namespace epocast {

TableSums::Holder TableSums::holder(std::size_t layer, const std::vector<std::vector<Lanes>>& gradients,
                                    const std::vector<std::vector<Lanes>>& updates) const {
  std::size_t c = 0;
  while (layer >= plan_.chunks[c].last) ++c;
  return {static_cast<int>(c), layer, gradients[c], updates[c]};
}

void TableSums::note(const std::vector<std::vector<Lanes>>& gradients, const std::vector<std::vector<Lanes>>& updates) {
  std::vector<Sum>& step = steps_.emplace_back();
  for (const SharedTable& table : plan_.tables) {
    if (!(plan_.traces.front()->layers[table.layer].parameters.value > 0)) continue;  // frozen
    Sum& sum = step.emplace_back(Sum{&table, {}});
    sum.holders.push_back(holder(table.layer, gradients, updates));
    for (const std::size_t reader : table.readers) sum.holders.push_back(holder(reader, gradients, updates));
  }
}

void TableSums::write(const std::deque<StageWriter>& stages,
                      const std::vector<std::vector<std::unique_ptr<PlaceSynchronisation>>>& places) {
  const bool counterparts = plan_.replicas_are_equal();
  for (const std::vector<Sum>& step : steps_)
    for (const Sum& sum : step) {
      const LayerTrace& table = plan_.traces.front()->layers[sum.table->layer];
      std::vector<DeviceId> devices;
      std::vector<TaskId> made, summed;
      int shares = 1;
      for (const Holder& holder : sum.holders) {
        const StageWriter& stage = stages[static_cast<std::size_t>(plan_.chunk(holder.chunk).stage)];
        const std::vector<DeviceId>& own = stage.ranks().devices;
        devices.insert(devices.end(), own.begin(), own.end());
        const Axis together{.stride = 1, .extent = counterparts ? 1 : static_cast<std::uint32_t>(own.size())};
        made.push_back(graph_.barrier_along(together, stage.group(), {"wait", "gradients of " + table.name}));
        summed.push_back(graph_.barrier_along(together, stage.group(), {"wait", "sum of " + table.name}));
        for (const Lanes& lanes : holder.made) after_all(lanes, {made.back()});
        for (const Lanes& lanes : holder.updates) after_all({summed.back()}, lanes);
        if (&step != &steps_.back()) continue;  // replicas agree in the last one
        for (const auto& place : places[static_cast<std::size_t>(holder.chunk)]) {
          const StageSum own_sum = place->stage_sum(holder.layer);
          after_all(own_sum.after, {made.back()});
          after_all({summed.back()}, own_sum.before);
          shares = std::max(shares, own_sum.shares);
        }
      }
      const auto all = static_cast<std::uint32_t>(devices.size()), holders = static_cast<std::uint32_t>(made.size());
      const QueueId queue = queue_of(*sum.table, table.name, devices);
      const TaskId added = graph_.collective_along(
          counterparts ? Axis{.stride = all / holders, .extent = holders} : Axis{.stride = 1, .extent = all}, queue,
          context_.collective.all_reduce(table.gradient_bytes() / shares, graph_.queue(queue).group),
          {"all-reduce", "gradients of " + table.name});
      after_all(made, {added});
      after_all({added}, summed);
    }
}

QueueId TableSums::queue_of(const SharedTable& table, const std::string& name, const std::vector<DeviceId>& devices) {
  const auto [queue, is_new] = queues_.try_emplace(table.layer);
  if (is_new)
    queue->second = graph_.add_queue("sum of " + name, graph_.add_group("all with " + name, devices),
                                     QueueRole::communication, Discipline::fifo);
  return queue->second;
}

void TableSums::after_all(const std::vector<TaskId>& before, const std::vector<TaskId>& after) {
  for (const TaskId one : before)
    for (const TaskId other : after) graph_.after(one, other);
}

}  // namespace epocast
