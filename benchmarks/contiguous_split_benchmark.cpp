// Times the optimal split of ResNet-50 into pipeline stages (strategies/partitioners/contiguous_split.hpp): range(0)
// devices, with and without replicas of stages, with and without a limit of memory that rules out the fastest split.

#include <benchmark/benchmark.h>

#include <vector>

#include "costmodels/roofline.hpp"
#include "sim/data_directory.hpp"
#include "strategies/partitioners/contiguous_split.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

const WorkloadTrace& resnet50() {
  static const WorkloadTrace trace = [] {
    const Device device{"d", "d", "synthetic", 1, FlopPerSecond(1e12), BytesPerSecond(100e9), Bytes(16e9)};
    return make_trace(load_model(data_directory() / "workloads" / "models" / "resnet50.yaml"),
                      Roofline{RooflineOptions{}}, 32, device);
  }();
  return trace;
}

/// Sums before each layer.
std::vector<double> sums(Bytes LayerTrace::*what) {
  std::vector<double> out{0};
  for (const LayerTrace& layer : resnet50().layers) out.push_back(out.back() + (layer.*what).value);
  return out;
}

/// A version of the parameters per stage to come, activations of as many batches.
Bytes need(const StagePosition& stage) {
  static const std::vector<double> parameters = sums(&LayerTrace::parameters);
  static const std::vector<double> kept = sums(&LayerTrace::kept_activations);
  const int in_flight = (stage.devices_from_here + stage.replicas - 1) / stage.replicas;
  return Bytes(stage.stages_from_here * (parameters[stage.last] - parameters[stage.first]) +
               in_flight * (kept[stage.last] - kept[stage.first]));
}

SplitOptions options_for(const benchmark::State& state, bool replicate) {
  return {.devices = static_cast<int>(state.range(0)),
          .stages = {},
          .replicate = replicate,
          .bandwidth = BytesPerSecond(1.25e9),
          .memory = {}};
}

/// The memory that the fastest split needs, less a tenth.
Bytes tight(SplitOptions options) {
  options.memory.reset();
  const std::vector<PipelineStage> stages = split_contiguous(resnet50(), options).stages;
  Bytes most;
  int devices = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    devices += stages[s].replicas;
    most = std::max(most, need({stages[s].first, stages[s].last, stages[s].replicas,
                                static_cast<int>(stages.size() - s), devices}));
  }
  return most * 0.9;
}

void split(benchmark::State& state, bool replicate, bool limit) {
  SplitOptions options = options_for(state, replicate);
  options.memory_of = need;
  if (limit) options.memory = tight(options);
  for (auto _ : state) {
    try {
      const ContiguousSplit found = split_contiguous(resnet50(), options);
      state.SetLabel(std::to_string(found.stages.size()) + " stages, " + std::to_string(found.slowest.value) + " s, " +
                     std::to_string(found.sent.value / 1e6) + " MB");
    } catch (const SplitError& error) {
      state.SkipWithError(error.what());
      break;
    }
  }
}

BENCHMARK_CAPTURE(split, one_device_per_stage, false, false)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(split, memory, false, true)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(split, replicas, true, false)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(split, replicas_memory, true, true)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace epocast

BENCHMARK_MAIN();
