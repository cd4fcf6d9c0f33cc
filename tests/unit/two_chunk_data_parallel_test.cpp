// Lee's two chunks on two workers, worked out by hand. Between 2 ranks with 1 ms of latency and 1 GB/s, a ring
// all-reduce of n MB takes 2 + n ms, an all-gather 1 + n/2 ms. All times below are in ms.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/support/error_message.hpp"
#include "tests/support/hand_timeline.hpp"

namespace epocast::two_chunk_data_parallel_test {

using testing::check;
using testing::two_layers;

namespace {

TrainingStep compile(const std::string& options, const Cluster& cluster, std::vector<DeviceId> workers) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const auto global = static_cast<std::int64_t>(workers.size());
  return builtin_strategies()
      .make("two_chunk_data_parallel", node, node)
      ->compile({cluster, std::move(workers), global, two_layers, {}});
}

}  // namespace

TEST_CASE("the first chunk hides behind the backward pass of the layers below it", "[two_chunk]") {
  check({.strategy = "two_chunk_data_parallel",
         .options = "{k: 1}",
         .period = 113,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce chunk 1", 60, 82},    // B: 2 + 20
                  {"all-reduce chunk 2", 100, 112},  // A: 2 + 10
                  {"update B", 100, 102},            // its chunk came long ago
                  {"update A", 112, 113}}},          // waits for its own
        two_layers);
}

TEST_CASE("with all layers in the first chunk nothing is left for a second", "[two_chunk]") {
  check({.strategy = "two_chunk_data_parallel",
         .options = "{k: 2}",
         .period = 135,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce chunk 1", 100, 132},
                  {"update B", 132, 134},
                  {"update A", 134, 135}}});
}

TEST_CASE("replicated gradients: gathers instead of a reduction, applied one iteration later", "[two_chunk]") {
  // B is the first chunk's only layer and is not reduced: only A's chunk is. Its input of 2 x 4 MB is gathered from the
  // end of forward A on (1 + 4), its errors of 2 x 2 MB after the wait for the second chunk (1 + 2), behind the next
  // forward A. Its gradient for both samples takes 30; then backward B makes only the input's gradient.
  check({.strategy = "two_chunk_data_parallel",
         .options = "{k: 1, f: 1}",
         .period = 130,
         .rows = {{"forward A", 0, 10},
                  {"all-gather activations B", 10, 15},
                  {"gradient B", 10, 40},  // from what was gathered in the iteration before
                  {"update B", 40, 42},
                  {"forward B", 42, 62},
                  {"backward B", 62, 77},
                  {"backward A", 77, 117},
                  {"all-reduce chunk 2", 117, 129},
                  {"all-gather errors B", 129, 132},
                  {"update A", 129, 130}},
         .compute = 118,         // 10 + 30 + 2 + 20 + 15 + 40 + 1
         .megabytes = 2 * 16});  // each worker sends 10 of A, activations of 4, errors of 2
}

TEST_CASE("a frozen layer has no gradient that workers could replicate", "[two_chunk]") {
  const Cluster cluster = testing::cluster_of(2);
  const auto gathers = [&](const TraceSource& trace) {
    const ConfigNode node = ConfigNode::load_text("{k: 1, f: 1}", "options");
    const TrainingStep step =
        builtin_strategies().make("two_chunk_data_parallel", node, node)->compile({cluster, {0, 1}, 2, trace, {}});
    return std::ranges::count_if(step.graph.tasks(), [](const Task& task) {
      return std::string(task.label.operation).starts_with("all-gather");
    });
  };
  CHECK(gathers(two_layers) == 2);  // activations and errors
  CHECK(gathers([](std::int64_t batch) {
          WorkloadTrace trace = two_layers(batch);
          LayerTrace& last = trace.layers.back();
          last.frozen = std::exchange(last.parameters, Bytes(0));
          last.gradients.clear();
          last.times.backward_weights = last.times.update = Seconds(0);
          return trace;
        }) == 0);
}

TEST_CASE("cores for communication slow down passes, the whole batch's gradient too", "[two_chunk]") {
  Cluster cluster = testing::cluster_of(2);
  for (Device& device : cluster.devices) device.cores = 4;
  const TrainingStep with = compile("{k: 1, f: 1, communication_cores: 1}", cluster, {0, 1});
  const TrainingStep without = compile("{k: 1, f: 1}", cluster, {0, 1});
  REQUIRE(with.graph.tasks().size() == without.graph.tasks().size());
  int computations = 0;
  for (std::size_t t = 0; t < with.graph.tasks().size(); ++t)
    if (const auto* slow = std::get_if<Compute>(&with.graph.tasks()[t].work)) {
      ++computations;  // three cores do the work of four
      CHECK(slow->duration.longest().value ==
            Approx(4.0 / 3 * std::get<Compute>(without.graph.tasks()[t].work).duration.longest().value));
    }
  CHECK(computations == 7);
}

TEST_CASE("gathered activations and errors need memory", "[two_chunk]") {
  const Cluster cluster = testing::cluster_of(2);
  const double gathered = compile("{k: 1, f: 1}", cluster, {0, 1}).memory.front().use.total().value -
                          compile("{k: 1}", cluster, {0, 1}).memory.front().use.total().value;
  CHECK(gathered == Approx(2 * (4e6 + 2e6)));
}

TEST_CASE("k and f beyond the network are errors", "[two_chunk]") {
  const Cluster cluster = testing::cluster_of(2);
  const auto problem = [&](const std::string& options) {
    return testing::message([&] { compile(options, cluster, {0, 1}); });
  };
  CHECK(problem("{k: 3}").find("3 layers in the first chunk, but 'synthetic' has 2") != std::string::npos);
  CHECK(problem("{k: 1, f: 2}").find("2 replicated layers, but 'synthetic' has 1") != std::string::npos);
}

}  // namespace epocast::two_chunk_data_parallel_test
