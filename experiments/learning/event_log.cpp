#include "experiments/learning/event_log.hpp"

#include "sim/executor.hpp"

namespace epocast {
namespace {

ParameterLog record(const ScenarioSetup& setup, const PhaseSettings& phase, SimEngine& engine, std::uint64_t seed,
                    double elapsed, std::int64_t iterations) {
  const TrainingStep step = setup.compile(phase);
  ExecutionOptions how = execution_options(setup, phase, seed, elapsed);
  how.iterations = iterations;
  how.exact = true;
  how.fold = false;
  ParameterLogWriter writer(step.graph, step.steps, iterations);
  how.intervals = &writer;
  execute(step.graph, setup.cluster, engine, how);
  return writer.finish();
}

}  // namespace

ParameterLog record_parameter_log(const ScenarioSetup& setup, const PhaseSettings& phase, SimEngine& engine,
                                  std::uint64_t seed, double elapsed, std::int64_t iterations,
                                  const ExecutionResult* known) {
  if (known != nullptr && known->period) {
    const std::int64_t length = known->period->length;
    const std::int64_t enough = known->iterations_simulated + 3 * length + 2;
    if (enough < iterations) {
      ParameterLog log = record(setup, phase, engine, seed, elapsed, enough);
      if (continue_by_period(log, length, iterations)) return log;
    }
  }
  return record(setup, phase, engine, seed, elapsed, iterations);
}

}  // namespace epocast
