// collective.cached_reduction: another rate of addition for vectors up to a size.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>

#include "experiments/scenario.hpp"

namespace epocast::cached_reduction_test {

TEST_CASE("vectors up to the size are added up at the other rate, free reductions stay free", "[cached_reduction]") {
  setenv("EPOCAST_DATA", EPOCAST_SOURCE_DIR, 1);
  // Layers of mlp_mnist: 784 x 512 + 512, 512 x 512 + 512 and 512 x 10 + 10 values: 1.6, 1.05 and 0.02 MB.
  const Study study = parse_study(
      "study: s\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 4\nbatch: {per_worker: 32}\n"
      "strategy: {name: layerwise_data_parallel, gradients: all_reduce}\n"
      "collective: {reduction_rate: 2 GB/s, cached_reduction: {up_to: 1.1 MB, rate: 10 GB/s}}\n",
      "study.yaml");
  const ScenarioSetup setup = read_scenario(study.scenarios.front(), builtin_registries());
  int cached = 0, others = 0;
  const TrainingStep step = setup.compile(setup.phases.front());
  for (const Task& task : step.graph.tasks())
    if (const auto* collective = std::get_if<Collective>(&task.work)) {
      const bool small = collective->bytes.value <= 1.1e6;
      CHECK(collective->gamma == Approx(small ? 1e-10 : 5e-10));
      ++(small ? cached : others);
    }
  CHECK(cached == 2);
  CHECK(others == 1);
  Collective free_of_charge{.bytes = Bytes(1)};
  setup.tune(free_of_charge, step.graph.groups().front());
  unsetenv("EPOCAST_DATA");
  CHECK(free_of_charge.gamma == 0);
  // What runs as one is of another size, and costs accordingly.
  Collective fused{.bytes = Bytes(2e6), .gamma = 1e-10};
  setup.tune(fused, step.graph.groups().front());
  CHECK(fused.gamma == Approx(5e-10));
}

}  // namespace epocast::cached_reduction_test
