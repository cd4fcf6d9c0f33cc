#pragma once
// Event logs of strategies, from simulations in children.

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "sim/parameter_log.hpp"
#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::testing {

struct LogSetting {
  std::string strategy = "parameter_server";
  std::string options = "{}";
  int workers = 1;
  std::int64_t iterations = 20;
  NoiseModel noise = {};
  std::vector<double> slowdown = {};
  TraceSource trace =
      TraceSource([](std::int64_t batch) { return chain({layer("A", 1e-2, 2e-2, 1e-4, {1e3})}, batch); });
};

struct Recorded {
  TrainingStep step;
  ExecutionResult result;
  ParameterLog log;
};

/// The log of an execution whose timeline was recorded.
inline ParameterLog log_of(const CyclicTaskGraph& graph, std::int64_t steps, const Timeline& timeline,
                           std::int64_t iterations) {
  ParameterLogWriter writer(graph, steps, iterations, std::numeric_limits<std::size_t>::max());
  for (const Interval& interval : timeline.intervals) writer.begins(interval.task, interval.start);
  for (const Interval& interval : timeline.intervals) writer.ends(interval);
  return writer.finish();
}

/// All iterations of a strategy on a star of 1 GB/s and 1 us, and what they did to parameters.
inline Recorded record(const LogSetting& setting) {
  const Star star(setting.workers + 1, 1e9, 1e-6);
  const ConfigNode node = ConfigNode::load_text(setting.options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(setting.workers));
  std::iota(devices.begin(), devices.end(), 0);
  Recorded out;
  out.step = builtin_strategies()
                 .make(setting.strategy, node, node)
                 ->compile({.cluster = star.cluster(),
                            .workers = devices,
                            .global_batch = setting.workers,
                            .trace = setting.trace,
                            .collective = {}});
  out.result = simulate(star.cluster(), out.step.graph,
                        {.iterations = setting.iterations,
                         .exact = true,
                         .fold = false,
                         .noise = setting.noise,
                         .slowdown = setting.slowdown,
                         .record_timeline = true});
  out.log = log_of(out.step.graph, out.step.steps, out.result.timeline, setting.iterations);
  return out;
}

}  // namespace epocast::testing
