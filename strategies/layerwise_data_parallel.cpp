#include "strategies/layerwise_data_parallel.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "strategies/choice.hpp"
#include "strategies/layer_passes.hpp"
#include "strategies/parameter_unit.hpp"
#include "strategies/step/single_stage.hpp"
#include "strategies/synchronisation/all_reduce.hpp"
#include "strategies/worker_program.hpp"

namespace epocast {
namespace {

using enum CollectiveOp;
using enum CollectiveAlgorithm;
using Gradients = LayerwiseDataParallel::Gradients;
using Overlap = LayerwiseDataParallel::Overlap;

/// Layer by layer, gradients summed everywhere.
AllReduce::Settings all_reduce_settings(Overlap overlap) {
  using enum AllReduce::UpdateTime;
  return {.rule = {.granularity = Granularity::unit},
          .overlap = overlap != Overlap::none,
          .update = overlap == Overlap::none       ? after_all
                    : overlap == Overlap::backward ? after_backward
                                                   : before_forward};
}

/// One compilation of what is not summed everywhere: the program of one iteration, written pass by pass.
class LayerwiseWriter {
 public:
  LayerwiseWriter(CyclicTaskGraph& graph, const StrategyContext& context, const WorkloadTrace& trace,
                  Gradients gradients, Overlap overlap, std::vector<LayerTrace> whole_batch)
      : context_(context),
        trace_(trace),
        units_(parameter_units(trace)),
        gradients_(gradients),
        overlap_(overlap),
        workers_(static_cast<double>(context.workers.size())),
        program_(graph, context, overlap == Overlap::none),
        whole_batch_(std::move(whole_batch)),
        sums_(units_.all.size()),
        activations_(units_.all.size()),
        errors_(units_.all.size()),
        first_use_(units_.all.size()),
        parameters_(units_.all.size()) {}

  void write() {
    forward();
    backward();
    if (overlap_ != Overlap::none) apply();
    program_.close();
  }

  MemoryUse memory() const {
    MemoryUse use = replica_memory(trace_, context_.optimizer);
    if (workers_ == 1) return use;
    use.optimizer_state = use.optimizer_state / workers_;
    if (gradients_ != Gradients::pcnn) return use;
    Bytes received;
    for (const ParameterUnit& unit : units_.all) {
      if (unit.fully_connected)
        use.activations += trace_.layers[unit.first].output * workers_;  // errors of the whole batch
      else
        received = std::max(received, unit.bytes);
    }
    use.gradients += received;
    return use;
  }

 private:
  bool by_errors(std::size_t u) const { return gradients_ == Gradients::pcnn && units_.all[u].fully_connected; }
  const std::string& name(std::size_t u) const { return units_.all[u].name; }

  void forward() {
    for (std::size_t l = 0; l < trace_.layers.size(); ++l) {
      const LayerTrace& layer = trace_.layers[l];
      const int starting = units_.starting_at[l];
      const auto u = static_cast<std::size_t>(starting);
      if (starting >= 0 && by_errors(u))
        activations_[u] =
            program_.post(all_to_all, pairwise, input_bytes(trace_, l), {"all-to-all activations", layer.name});
      if (starting >= 0) first_use_[u] = program_.here();
      program_.compute(layer.times.forward, {"forward", layer.name});
    }
  }

  void backward() {
    for (std::size_t l = trace_.layers.size(); l-- > 0;) {
      const LayerTrace& layer = trace_.layers[l];
      const int starting = units_.starting_at[l];
      const auto u = static_cast<std::size_t>(starting);
      if (starting < 0) {
        program_.compute(layer.times.backward(), {"backward", layer.name});
      } else if (by_errors(u)) {
        errors_[u] = program_.post(all_gather, ring, layer.output * workers_, {"all-gather errors", layer.name});
        program_.compute(layer.times.recompute + layer.times.backward_data, {"backward", layer.name});
      } else {
        program_.compute(layer.times.backward(), {"backward", layer.name});
        sums_[u] = post_gradients(u);
      }
      if (starting >= 0 && overlap_ == Overlap::none) apply(u);
    }
  }

  std::optional<TaskId> post_gradients(std::size_t u) {
    const Bytes bytes = units_.all[u].bytes;
    if (gradients_ == Gradients::reduce_scatter)
      return program_.post(reduce_scatter, pairwise, bytes, {"reduce-scatter", name(u)});
    return program_.post(all_to_all, pairwise, bytes, {"all-to-all gradients", name(u)});
  }

  /// What follows the backward pass.
  void apply() {
    for (std::size_t u = 0; u < units_.all.size(); ++u) apply(u);
    for (std::size_t u = 0; u < units_.all.size(); ++u)
      if (overlap_ == Overlap::backward)
        program_.wait(parameters_[u]);
      else
        program_.wait_for_previous(first_use_[u], parameters_[u]);
  }

  /// From a unit's summed gradient, or what it is computed from, to its new parameters.
  void apply(std::size_t u) {
    const ParameterUnit& unit = units_.all[u];
    if (by_errors(u)) {
      program_.wait(activations_[u]);
      program_.wait(errors_[u]);
      program_.compute(whole_batch_[unit.first].times.backward_weights * (1 / workers_), {"gradient", unit.name});
    } else {
      program_.wait(sums_[u]);
      if (gradients_ == Gradients::pcnn && workers_ > 1) program_.compute(sum_time(unit.bytes), {"sum", unit.name});
    }
    program_.compute(unit.update / workers_, {"update", unit.name});
    parameters_[u] = program_.post(all_gather, ring, unit.bytes, {"all-gather parameters", unit.name});
  }

  /// Adding up P parts of n/P bytes: each is read once, the sum written.
  DeviceTime sum_time(Bytes bytes) const {
    return context_.on_each_worker(
        [&](const Device& device) { return bytes * (1 + 1 / workers_) / device.memory_bandwidth; });
  }

  const StrategyContext& context_;
  const WorkloadTrace& trace_;
  ParameterUnits units_;
  Gradients gradients_;
  Overlap overlap_;
  double workers_;
  WorkerProgram program_;
  std::vector<LayerTrace> whole_batch_;  ///< for partial gradients
  // By unit.
  std::vector<std::optional<TaskId>> sums_, activations_, errors_;  ///< what the gradient waits for
  std::vector<std::size_t> first_use_;                              ///< point of the program that needs new parameters
  std::vector<std::optional<TaskId>> parameters_;                   ///< brings them
};

}  // namespace

EntryInfo LayerwiseDataParallel::info() {
  return {"layerwise_data_parallel",
          "data parallelism layer by layer, hidden behind backward and next forward (PCL-DNN, Intel Caffe, Lee's pcnn)",
          {{"gradients", "", "all_reduce | reduce_scatter | pcnn", "all_reduce",
            "how gradients are summed, and who updates which parameters"},
           {"overlap", "", "none | backward | next_forward", "next_forward", "what communication may hide behind"},
           CommunicationCores::parameter()}};
}

LayerwiseDataParallel::LayerwiseDataParallel(const ConfigNode& options)
    : gradients_(choose(options, "gradients",
                        {{"all_reduce", Gradients::all_reduce},
                         {"reduce_scatter", Gradients::reduce_scatter},
                         {"pcnn", Gradients::pcnn}},
                        Gradients::all_reduce)),
      overlap_(
          choose(options, "overlap",
                 {{"none", Overlap::none}, {"backward", Overlap::backward}, {"next_forward", Overlap::next_forward}},
                 Overlap::next_forward)),
      cores_(options) {}

TrainingStep LayerwiseDataParallel::compile(const StrategyContext& context) const {
  if (gradients_ == Gradients::all_reduce)
    return single_stage_step(cores_.slowed(context), 1, AllReduce(all_reduce_settings(overlap_)));
  const WorkloadTrace trace = cores_.slowed_trace(context, context.worker_batch());
  std::vector<LayerTrace> whole_batch;
  if (gradients_ == Gradients::pcnn) whole_batch = cores_.slowed_trace(context, context.global_batch).layers;
  TrainingStep step;
  LayerwiseWriter writer(step.graph, context, trace, gradients_, overlap_, std::move(whole_batch));
  writer.write();
  step.memory.push_back({"worker", context.workers, writer.memory()});
  return step;
}

}  // namespace epocast
