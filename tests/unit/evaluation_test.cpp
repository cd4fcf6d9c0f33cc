// What an evaluation costs: forward passes, and nothing of what training does for the sake of backward passes.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::evaluation_test {

namespace {

/// Four steps, and one batch to evaluate.
const std::string kBase =
    "study: evaluation\nplatform: dgx_a100\nworkers: 4\ncompute: roofline\nprecision: bf16\noptimizer: adam\n"
    "stack: ideal\ncollective: {algorithm: ring}\n"
    "model: {name: gpt, layers: 4, hidden: 256, heads: 4, sequence: 128, vocabulary: 1024}\n"
    "dataset: {samples: 128}\nbatch: {global: 32}\n";

/// s that the evaluation takes in each of the studies, of which these are the lines that differ.
std::vector<double> evaluations(const std::vector<std::string>& studies) {
  const std::vector<std::string> runs = testing::in_children(2 * static_cast<int>(studies.size()), [&](int i) {
    const std::string pauses = i % 2 == 0 ? "" : "pauses: {evaluation: {samples: 32}}\n";
    const Study study = parse_study(kBase + studies[static_cast<std::size_t>(i / 2)] + pauses, "study.yaml");
    return serialize(run_scenario(study.scenarios.front(), builtin_registries(), {}));
  });
  std::vector<double> out;
  for (std::size_t s = 0; s < studies.size(); ++s)
    out.push_back(deserialize(runs[2 * s + 1]).total_s - deserialize(runs[2 * s]).total_s);
  return out;
}

double evaluation(const std::string& strategy) { return evaluations({"strategy: " + strategy + "\n"}).front(); }

}  // namespace

TEST_CASE("an evaluation costs the same whatever training forgets or moves to the host", "[pauses]") {
  for (const std::string strategy :
       {"data_parallel", "{name: sharded_data_parallel, unit: 1 MB}", "filter_parallel", "{name: local_sgd, period: 3}",
        "{mesh: {pipeline: 4}, schedule: {name: 1f1b, micro_batches: 8}}",
        "{mesh: {tensor: 4}, body: {name: tensor, sequence_parallel: true}}"}) {
    std::vector<std::string> studies;
    for (const std::string memory :
         {"", "memory: {recompute: full}", "memory: {recompute: selective}", "memory: {recompute: sqrt}",
          "memory: {offload: {what: activations, overlap: false}}"})
      studies.push_back("strategy: " + strategy + "\n" + memory + "\n");
    const std::vector<double> seconds = evaluations(studies);
    CHECK(seconds.front() > 0);
    for (std::size_t s = 1; s < studies.size(); ++s) {
      INFO(studies[s]);
      CHECK(seconds[s] == Approx(seconds.front()).epsilon(1e-9));
    }
  }
}

TEST_CASE("an evaluation costs the same however a strategy comes by its gradients", "[pauses]") {
  const auto same = [](const std::string& one, const std::string& other) {
    INFO(one << " and " << other);
    CHECK(evaluation(one) == Approx(evaluation(other)).epsilon(1e-9));
  };
  same("{mesh: {pipeline: 4}, schedule: {name: 1f1b, micro_batches: 8}}",
       "{mesh: {pipeline: 4}, schedule: {name: 1f1b, micro_batches: 8, recompute: true}}");
  same("{mesh: {pipeline: 4}, schedule: naive}",
       "{mesh: {pipeline: 4}, schedule: {name: naive, gradients: one_processor}}");
  // Evaluations drop nobody's samples.
  same("{name: parameter_server, location: device, mode: backup}", "{name: parameter_server, location: device}");
  // Parameters that are dropped after the forward pass would be gathered again for the backward pass.
  same("{name: sharded_data_parallel, unit: 1 MB, reshard: false}", "{name: sharded_data_parallel, unit: 1 MB}");
}

}  // namespace epocast::evaluation_test
