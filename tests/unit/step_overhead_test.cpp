// The framework's time for a batch is paid once, whatever is computed again.
#include <catch2/catch.hpp>

#include "experiments/scenario.hpp"

namespace epocast::step_overhead_test {

namespace {

WorkloadTrace trace_of(const std::string& overhead, const std::string& recompute) {
  const Study study = parse_study(
      "study: overhead\nplatform: dgx1_v100\nmodel: gpt2\nbatch: {per_worker: 4}\nworkers: 1\ndataset: {samples: "
      "4000}\nstrategy: single\ncompute: {cost_model: roofline, step_overhead: " +
          overhead + "}\nmemory: {recompute: " + recompute + "}\n",
      "study.yaml");
  const ScenarioSetup setup = read_scenario(study.scenarios.front(), builtin_registries());
  return setup.trace(0, 4, setup.memory);
}

double seconds(const WorkloadTrace& trace) { return trace.compute_time().longest().value; }

}  // namespace

TEST_CASE("an overhead of a batch is not computed again", "[recompute]") {
  for (const std::string recompute : {"none", "blocks", "sqrt", "4", "full", "selective"}) {
    CAPTURE(recompute);
    const WorkloadTrace without = trace_of("0 s", recompute), with = trace_of("1 s", recompute);
    CHECK(seconds(with) - seconds(without) == Approx(1).epsilon(1e-9));
    // The second forward passes take the same.
    for (std::size_t l = 0; l < with.layers.size(); ++l)
      CHECK(with.layers[l].times.recompute.longest().value ==
            Approx(without.layers[l].times.recompute.longest().value).margin(1e-12));
  }
  // As stages of a pipeline forget what they hold.
  WorkloadTrace without = trace_of("0 s", "none"), with = trace_of("1 s", "none");
  forget_everything(without);
  forget_everything(with);
  CHECK(seconds(with) - seconds(without) == Approx(1).epsilon(1e-9));
}

}  // namespace epocast::step_overhead_test
