#include "strategies/synchronisation/posted_place.hpp"

namespace epocast {

Bytes PostedPlace::input_bytes(std::size_t layer) const {
  Bytes bytes;
  for (const int input : trace_.layers[layer].inputs) bytes += trace_.layers[static_cast<std::size_t>(input)].output;
  return bytes;
}

const WorkloadTrace& PostedPlace::whole_batch() {
  if (!whole_batch_) whole_batch_ = place_.context.trace(place_.context.global_batch);
  return *whole_batch_;
}

DeviceTime PostedPlace::sum_time(Bytes bytes) const {
  return place_.context.on_each_worker(
      [&](const Device& device) { return bytes * (1 + 1 / replicas()) / device.memory_bandwidth; });
}

void PostedPlace::compute(const DeviceTime& time, const char* operation, const std::string& layer) {
  place_.stage.cut(layer);
  if (time.any()) written_ = place_.stage.task(time, {operation, place_.name() + layer});
}

std::optional<TaskId> PostedPlace::post(CollectiveOp op, std::optional<CollectiveAlgorithm> algorithm, Bytes bytes,
                                        const std::string& what, const std::string& layer, int micro_batch) {
  if (place_.replicas() == 1 || !(bytes.value > 0)) return std::nullopt;
  place_.stage.cut(layer);
  std::string operation = to_string(op);
  for (char& letter : operation)
    if (letter == '_') letter = '-';
  if (!what.empty()) operation += " " + what;
  return place_.stage.post(op, algorithm, place_.along, communication_, bytes,
                           {operation, place_.name() + layer, place_.micro_batches > 1 ? micro_batch : -1}, blocking_);
}

void PostedPlace::tie_to_next(std::optional<TaskId> posted, std::size_t mark) {
  if (!posted) return;
  const auto& [tasks, lag] = place_.stage.at(mark);
  for (const TaskId task : tasks) place_.stage.graph().after(*posted, task, lag + 1);
}

Lanes PostedPlace::ended(bool in_pass) {
  if (place_.by_layer) return {};
  return in_pass || written_.empty() ? Lanes{place_.stage.moment({"updated", place_.chunk.name})} : written_;
}

}  // namespace epocast
