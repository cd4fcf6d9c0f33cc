// What replicas send each other in pipelines and teams, by formula; and where a synchronisation cannot work.
#include <catch2/catch.hpp>

#include <string>

#include "tests/support/conservation.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::synchronisation_test {

namespace {

constexpr int kReplicas = 2, kWorkers = 8;

TrainingStep compile(const std::string& synchronisation, const std::string& schedule = "1f1b",
                     const std::string& mesh = "{pipeline: 2, data: 2, tensor: 2}", int workers = kWorkers) {
  static const testing::Star star(2 * kWorkers, 1e9, 1e-6);
  static const auto model = testing::small_transformer(2);
  return testing::compile_transformer(
      star.cluster(), workers, "composition",
      "{mesh: " + mesh + ", schedule: {name: " + schedule + "}, synchronisation: " + synchronisation + "}", {model, 8});
}

/// B that all devices send in one iteration of the graph; every collective by rings.
double sent(const std::string& synchronisation) {
  return testing::sum(testing::bytes_sent_per_iteration(compile(synchronisation).graph, 2 * kWorkers));
}

std::string refusal(const std::string& synchronisation, const std::string& schedule,
                    const std::string& mesh = "{pipeline: 2, data: 2, tensor: 2}") {
  return testing::message([&] { compile(synchronisation, schedule, mesh); });
}

}  // namespace

TEST_CASE("bytes of every synchronisation in a pipeline of teams", "[synchronisation]") {
  // One step costs `inside` within replicas; an average by ring 2 (d - 1) times the parameters of a replica, which is
  // twice of them. Two steps and one average are a round of period 2.
  const double one = sent("{name: average, period: 1}"), two = sent("{name: average, period: 2}");
  const double inside = two - one, parameters = (one - inside) / (2 * (kReplicas - 1));
  CHECK(inside > 0);
  CHECK(parameters > 0);
  CHECK(sent("all_reduce") == Approx(one).epsilon(1e-9));
  // Each device sends its parameters to its neighbour, who sends back its own.
  CHECK(sent("{name: gossip}") == Approx(inside + 2 * kReplicas * parameters).epsilon(1e-9));
  CHECK(sent("{name: gossip, period: 3}") == Approx(3 * inside + 2 * kReplicas * parameters).epsilon(1e-9));
  // Each replica pushes all and pulls all.
  for (const std::string mode : {"sync", "async", "stale"})
    CHECK(sent("{name: parameter_server, servers: 2, mode: " + mode + "}") ==
          Approx(inside + 2 * kReplicas * parameters).epsilon(1e-9));
  for (const std::string rule : {"downpour", "model_averaging", "easgd", "aeasgd"})
    CHECK(sent("{name: " + rule + ", period: 2}") == Approx(2 * inside + 2 * kReplicas * parameters).epsilon(1e-9));
}

TEST_CASE("bytes of synchronisations that compress what they send", "[synchronisation]") {
  const double one = sent("{name: average, period: 1}"), two = sent("{name: average, period: 2}");
  const double inside = two - one, parameters = (one - inside) / (2 * (kReplicas - 1));
  const auto sent_by_replicas = [&](const std::string& synchronisation) {
    return Approx((sent(synchronisation) - inside) / parameters).epsilon(1e-9);
  };
  // Half of each value; of what goes to servers, not what comes back.
  CHECK(1 * (kReplicas - 1) == sent_by_replicas("{name: average, period: 1, compression: fp16}"));
  CHECK(1 * kReplicas == sent_by_replicas("{name: gossip, compression: fp16}"));
  CHECK(1.5 * kReplicas == sent_by_replicas("{name: parameter_server, servers: 2, compression: fp16}"));
  CHECK(1.5 * kReplicas == sent_by_replicas("{name: downpour, compression: fp16}"));
  // Shards of a table on two stages are added up shard by shard: inside a replica, less than the whole.
  const double plain = sent("{name: sharded, stage: 1}");
  const auto saved = [&](const std::string& compression) {
    return Approx((plain - sent("{name: sharded, stage: 1, compression: " + compression + "}")) / parameters)
        .epsilon(1e-9);
  };
  CHECK(0.5 * (kReplicas - 1) == saved("fp16"));
  // A byte of each value and a scale of 4 B for each of the four devices' parts, all to all; then whole parameters.
  CHECK((0.75 - 4 * 4 / parameters) * (kReplicas - 1) == saved("int8"));
  // As many as an all-reduce, by other operations.
  for (const std::string same : {"{name: partial_gradients, gradients: reduce_scatter}", "{name: two_chunks, k: 4}"})
    CHECK(2 * (kReplicas - 1) == sent_by_replicas(same));
}

TEST_CASE("servers of stages are devices of their own, or hold more than the workers they are on",
          "[synchronisation]") {
  const auto total = [](const TrainingStep& step) {
    double bytes = 0;
    for (const DeviceMemory& held : step.memory)
      bytes += held.use.parameters.value * static_cast<double>(held.devices.size());
    return bytes;
  };
  const double workers = total(compile("all_reduce"));
  const TrainingStep apart = compile("{name: parameter_server, servers: 2}"),
                     on_hosts = compile("{name: parameter_server, servers: all, location: colocated}");
  // One copy of what a replica has, which is half of what both of them have.
  CHECK(total(apart) == Approx(total(on_hosts)).epsilon(1e-9));
  CHECK(total(apart) == Approx(workers * 1.5).epsilon(1e-9));
  CHECK(apart.memory.size() == 2 + 4);
  CHECK(on_hosts.memory.size() == kWorkers);
  CHECK(on_hosts.memory.front().holder.find("stage 0 server 0") != std::string::npos);
}

TEST_CASE("synchronisations that a schedule or a mesh cannot have are refused, with what can", "[synchronisation]") {
  for (const std::string schedule : {"pipedream", "2bw", "threaded"})
    for (const std::string name : {"average", "gossip", "downpour", "easgd"}) {
      const std::string said = refusal("{name: " + name + "}", schedule);
      CHECK(said.find(name + " exchanges parameters between steps, but schedule " + schedule) != std::string::npos);
      CHECK(said.find("use schedule: 1f1b") != std::string::npos);
    }
  for (const std::string name : {"average", "gossip", "aeasgd", "parameter_server, mode: async"})
    CHECK(refusal("{name: " + name + "}", "1f1b", "{data: 4, context: 2}").find("use synchronisation: all_reduce") !=
          std::string::npos);
  CHECK(refusal("{name: parameter_server, mode: backup}", "1f1b").find("use mode: stale") != std::string::npos);
  CHECK(refusal("{name: gossip}", "1f1b", "{pipeline: 2, tensor: 4}").find("use all_reduce") != std::string::npos);
  CHECK(refusal("{name: average, period: 5000}", "1f1b").find("at most 1000 steps") != std::string::npos);
  CHECK(refusal("{name: parameter_server, servers: 5}", "1f1b").find("for each stage") != std::string::npos);
}

TEST_CASE("staleness on servers of schedules without flush counts what other replicas update", "[synchronisation]") {
  // Of four equal replicas each updates once while another makes a gradient. threaded with one batch in flight begins
  // it with what its last update led to: 3. 2bw with what the one before did: that update, and two of each other: 7.
  const testing::Star star(2 * kWorkers, 1e9, 1e-6);
  const auto mean = [&](const std::string& mode, const std::string& schedule) {
    const TrainingStep step =
        compile("{name: parameter_server, mode: " + mode + "}", schedule, "{pipeline: 1, data: 4, tensor: 1}", 4);
    const ExecutionResult result = testing::simulate(star.cluster(), step.graph, {.iterations = 200, .exact = true});
    return result.metrics.mean_staleness.value();
  };
  CHECK(mean("sync", "threaded, in_flight: 1") == 0);
  CHECK(mean("async", "threaded, in_flight: 1") == Approx(3).margin(0.1));
  CHECK(mean("sync", "2bw, micro_batches: 1") == 1);
  CHECK(mean("async", "2bw, micro_batches: 1") == Approx(7).margin(0.2));
}

}  // namespace epocast::synchronisation_test
