// Parameter servers on a star of 1 GB/s and 1 ms, worked out by hand. Workers share the server's uplink when they pull
// and its downlink when they push. Times in ms: forward 10, backward 20, update 2, 10 MB of parameters; adding 10 MB to
// a sum takes three memory accesses, 3 x 10 MB / 500 GB/s = 0.06. The server is the first device that is not a worker.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/served.hpp"

namespace epocast::parameter_server_test {

using namespace testing::served;
using testing::interval;

TEST_CASE("synchronous: all push, the server sums and updates, all pull", "[parameter_server]") {
  // pull: 1 + 2 x 10 MB through one link; then 10 + 20; push as pull; two sums of 0.06 and the update of 2: 74.12 in
  // all.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 2, "{mode: sync}");
  const double period = 74.12;
  for (const std::int64_t k : {0, 1, 30}) {
    const double t = static_cast<double>(k) * period;
    for (const std::uint32_t rank : {0U, 1U}) {
      executed.check("pull A", rank, k, t, t + 21);
      executed.check("forward A", rank, k, t + 21, t + 31);
      executed.check("backward A", rank, k, t + 31, t + 51);
      executed.check("push A", rank, k, t + 51, t + 72);
    }
    // The gradients arrive together: the server takes one after the other, in either order.
    const std::uint32_t first = executed.start("accumulate A", 0, k) < executed.start("accumulate A", 1, k) ? 0 : 1;
    executed.check("accumulate A", first, k, t + 72, t + 72.06);
    executed.check("accumulate A", 1 - first, k, t + 72.06, t + 72.12);
    executed.check("update A", 0, k, t + 72.12, t + 74.12);
  }
  const StepMetrics& metrics = executed.result.metrics;
  CHECK(executed.result.iteration == Approx(period * kMs).margin(1e-9));
  CHECK(metrics.mean_staleness == 0.0);
  CHECK(metrics.max_staleness == 0);
  CHECK(metrics.bytes == Approx(4 * 10 * kMB));
  CHECK(metrics.compute == Approx(30 * kMs).margin(1e-9));
  CHECK(metrics.exposed_communication == Approx(42 * kMs).margin(1e-9));
  CHECK(metrics.max_link_utilization == Approx(20 / period).epsilon(1e-9));  // 20 MB per iteration and direction
}

TEST_CASE("without overlap a step begins when all updates of the last one have ended", "[parameter_server]") {
  // Two layers as above, on one worker. Both pulls share the link: 1 + 2 x 10. Forward 2 x 10, backward 2 x 20 until
  // 81; both pushes until 102; the server takes in A, takes in B, updates A until 104.12, then B until 106.12.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed alone = run(star, 1, "{mode: sync, overlap: false}", {}, two_layers);
  for (const std::int64_t k : {0, 1, 30}) {
    const double t = static_cast<double>(k) * 106.12;
    for (const std::string layer : {"A", "B"}) {
      alone.check("pull " + layer, 0, k, t, t + 21);
      alone.check("push " + layer, 0, k, t + 81, t + 102);
    }
    alone.check("update A", 0, k, t + 102.12, t + 104.12);
    alone.check("update B", 0, k, t + 104.12, t + 106.12);
  }

  // Asynchronous workers wait for their own updates only.
  const Executed two = run(star, 2, "{mode: async, overlap: false}", {1, 1.5, 1}, two_layers);
  for (const std::uint32_t rank : {0U, 1U})
    for (std::int64_t k = 1; k < 30; ++k) {
      const double updated = std::max(interval(two.graph, two.result, "update A", rank, k - 1).end,
                                      interval(two.graph, two.result, "update B", rank, k - 1).end);
      CHECK(two.start("pull A", rank, k) == Approx(updated).margin(1e-12));
      CHECK(two.start("pull B", rank, k) == Approx(updated).margin(1e-12));
    }
}

TEST_CASE("pushes may overlap while pulls wait for the step to end", "[parameter_server]") {
  // Two layers, one worker. Both pulls share the link: 1 + 2 x 10. Forward until 41, backward B until 61, A until 81;
  // each gradient is pushed at once: 11. The server takes in B at 72 and A at 92, and updates it 2.06 later: 94.06.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 1, "{overlap: push}", {}, two_layers);
  for (const std::int64_t k : {0, 1, 30}) {
    const double t = static_cast<double>(k) * 94.06;
    for (const std::string layer : {"A", "B"}) executed.check("pull " + layer, 0, k, t, t + 21);
    executed.check("push B", 0, k, t + 61, t + 72);
    executed.check("update B", 0, k, t + 72.06, t + 74.06);
    executed.check("push A", 0, k, t + 81, t + 92);
    executed.check("update A", 0, k, t + 92.06, t + 94.06);
  }
  // Fetched as it is updated, B is there when A has been pulled.
  const Executed early = run(star, 1, "{}", {}, two_layers);
  early.check("pull B", 0, 1, 74.06, 85.06);
  early.check("pull A", 0, 1, 94.06, 105.06);
}

TEST_CASE("a step may begin when all of its pulls have ended, each of which began with its update",
          "[parameter_server]") {
  // As above, but B is pulled from 74.06 until 85.06, A from 94.06 until 105.06, when the next forward pass begins.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 1, "{overlap: step}", {}, two_layers);
  for (const std::int64_t k : {1, 2, 30}) {
    const double t = static_cast<double>(k - 1) * 84.06;
    executed.check("pull B", 0, k, t + 74.06, t + 85.06);
    executed.check("pull A", 0, k, t + 94.06, t + 105.06);
    executed.check("forward A", 0, k, t + 105.06, t + 115.06);
    executed.check("push B", 0, k, t + 145.06, t + 156.06);
  }
}

TEST_CASE("by tensor: each tensor is a message, and a server's share", "[parameter_server]") {
  // 6 and 4 MB on two servers: pulls of 7 and 5, pushes as well, updates in proportion: 1.2 and 0.8 of 2.
  const testing::Star star(4, 1e9, 1 * kMs);
  const auto two_tensors = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 2 * kMs, {6 * kMB, 4 * kMB})}, batch);
  };
  const Executed executed = run(star, 1, "{granularity: tensor, servers: 2}", {}, two_tensors);
  std::vector<double> bytes, updates;
  for (const Task& task : executed.graph.tasks()) {
    if (task.label.operation == "push") bytes.push_back(std::get<Transfer>(task.work).bytes.value);
    if (task.label.operation == "update") updates.push_back(std::get<Compute>(task.work).duration.on(0).value);
  }
  CHECK(bytes == std::vector{6 * kMB, 4 * kMB});
  REQUIRE(updates.size() == 2);
  CHECK(updates[0] == Approx(1.2 * kMs));
  CHECK(updates[1] == Approx(0.8 * kMs));
  // Pushes share the worker's link: the second ends after 9, the first after 11. The second's pull begins after 9.824
  // and has moved 2.412 MB when the first's joins it at 13.236; they share until 16.412, and the first ends at 20.824.
  CHECK(executed.result.iteration == Approx((30 + 20.824) * kMs).margin(1e-9));
}

TEST_CASE("by node: devices of a node sum first, then each pushes and pulls its share", "[parameter_server]") {
  // Two nodes of two. Each pulls 5 MB: four through the server's link, 1 + 20; the halves are exchanged: 1 + 5; after
  // 30 of computing halves are summed: 6; 21 for the pushes; four sums of 3 x 5 MB / 500 GB/s = 0.03, and the update.
  const testing::Star star(5, 1e9, 1 * kMs);
  Cluster cluster = star.cluster();
  for (std::size_t d = 0; d < 4; ++d) cluster.devices[d].node = d < 2 ? "a" : "b";
  const Executed executed = run(cluster, 4, "{by_node: true}", {}, one_layer);
  for (const std::int64_t k : {0, 30}) {
    const double t = static_cast<double>(k) * 86.12;
    executed.check("pull A", 3, k, t, t + 21);
    executed.check("gather in node A", 0, k, t + 21, t + 27);
    executed.check("backward A", 3, k, t + 37, t + 57);
    executed.check("sum in node A", 0, k, t + 57, t + 63);
    executed.check("push A", 3, k, t + 63, t + 84);
    executed.check("update A", 0, k, t + 84.12, t + 86.12);
  }
  CHECK(executed.result.metrics.bytes == Approx(80 * kMB));

  // Each copies 5 MB at 1 GB/s, 5 ms, between pull and exchange, and between sum and push.
  const Executed copied = run(cluster, 4, "{by_node: true, copy_rate: 1 GB/s}", {}, one_layer);
  for (const std::int64_t k : {0, 30}) {
    const double t = static_cast<double>(k) * 96.12;
    copied.check("unpack A", 3, k, t + 21, t + 26);
    copied.check("sum in node A", 0, k, t + 62, t + 68);
    copied.check("pack A", 3, k, t + 68, t + 73);
    copied.check("push A", 3, k, t + 73, t + 94);
  }

  // Alone on its node, a worker has nothing to sum; nodes of one and of three have no common share.
  CHECK(run(star, 4, "{by_node: true}").result.iteration == run(star, 4, "{}").result.iteration);
  cluster.devices[1].node = "b";
  CHECK_THROWS_WITH(run(cluster, 4, "{by_node: true}", {}, one_layer), Catch::Contains("by_node: nodes have unequal"));
}

TEST_CASE("a server that takes one request at a time replies before it takes the next", "[parameter_server]") {
  // Both want to pull at 0: one until 11, the other until 22. The first pushes 41..52, the update ends at 54, its pull
  // at 65; the other is ready to push at 52, but has to wait until then. Then they are out of each other's way.
  const testing::Star star(3, 1e9, 1 * kMs);
  const std::string loop = "mode: async, granularity: model, overlap: false, requests: one_at_a_time";
  const Executed executed = run(star, 2, "{" + loop + "}");
  const std::uint32_t first = executed.start("pull", 0, 0) < executed.start("pull", 1, 0) ? 0 : 1;
  executed.check("pull", 1 - first, 0, 11, 22);
  executed.check("push", first, 0, 41, 52);
  executed.check("update", first, 0, 52, 54);
  executed.check("pull", first, 1, 54, 65);
  executed.check("push", 1 - first, 0, 65, 76);
  executed.check("push", first, 1, 95, 106);
  CHECK(executed.result.iteration == Approx(54 * kMs).margin(1e-9));
  // The last 4 MB of a reply leave by themselves while the next push is taken.
  const Executed buffered = run(star, 2, "{" + loop + ", reply_buffer: 4 MB}");
  const std::uint32_t one = buffered.start("push", 0, 0) < buffered.start("push", 1, 0) ? 0 : 1;
  const double freed = interval(buffered.graph, buffered.result, "pull", one, 1).end;
  const Interval end = interval(buffered.graph, buffered.result, "end of reply", one, 1);
  CHECK(buffered.start("push", 1 - one, 0) == Approx(freed));
  CHECK(end.start == Approx(freed));
  CHECK(end.end >= freed + 4 * kMs - 1e-9);
}

TEST_CASE("a lone worker that is its own server moves nothing", "[parameter_server]") {
  const testing::Star star(2, 1e9, 1 * kMs);
  const Executed executed = run(star, 1, "{mode: async, location: colocated}");
  CHECK(executed.result.iteration == Approx(32 * kMs).margin(1e-9));  // 10 + 20 + 2
  CHECK(executed.result.metrics.bytes == 0);
}

TEST_CASE("copies, service and threads add up on the way", "[parameter_server]") {
  // One worker, one server. 10 MB: given out at 2 threads x 1 GB/s 5, sent 1 + 10, copied at 2 GB/s 5 + 0.5; then 10
  // and 20; copied 5.5, sent 11, taken in 5 with the sum 0.06, update 2: 75.06 in all.
  const testing::Star star(2, 1e9, 1 * kMs);
  const Executed executed =
      run(star, 1, "{copy_rate: 2 GB/s, message_overhead: 0.5 ms, server_rate: 1 GB/s, server_threads: 2}");
  for (const std::int64_t k : {0, 7}) {
    const double t = 75.06 * static_cast<double>(k);
    executed.check("serve A", 0, k, t, t + 5);
    executed.check("pull A", 0, k, t + 5, t + 16);
    executed.check("unpack A", 0, k, t + 16, t + 21.5);
    executed.check("backward A", 0, k, t + 31.5, t + 51.5);
    executed.check("pack A", 0, k, t + 51.5, t + 57);
    executed.check("push A", 0, k, t + 57, t + 68);
    executed.check("accumulate A", 0, k, t + 68, t + 73.06);
    executed.check("update A", 0, k, t + 73.06, t + 75.06);
  }
  CHECK(executed.result.iteration == Approx(75.06 * kMs).margin(1e-9));
  // Copying a message belongs to communicating: 5.5 + 11 each way.
  CHECK(executed.result.metrics.exposed_communication == Approx(33 * kMs).margin(1e-9));
}

TEST_CASE("communication keeps cores from computing", "[parameter_server]") {
  // Skylake nodes have 56 cores. 6 for the worker's communication: 56/50 as long. A server on its host takes 1 more.
  const Cluster skylake = testing::platform("skylake_opa");
  const auto forward = [&](const std::string& options, std::uint32_t rank) {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    const auto strategy = builtin_strategies().make("parameter_server", node, node);
    const TrainingStep step = strategy->compile({skylake, {0, 1}, 2, one_layer, {}});
    const ExecutionResult result =
        testing::simulate(skylake, step.graph, {.iterations = 3, .exact = true, .record_timeline = true});
    const Interval found = interval(step.graph, result, "forward A", rank, 1);
    return found.end - found.start;
  };
  CHECK(forward("{communication_cores: 6}", 0) == Approx(10 * kMs * 56 / 50).epsilon(1e-9));
  CHECK(forward("{communication_cores: 6, server_cores: 1}", 0) == Approx(10 * kMs * 56 / 50).epsilon(1e-9));
  const std::string beside = "{communication_cores: 6, server_cores: 1, location: colocated}";
  CHECK(forward(beside, 0) == Approx(10 * kMs * 56 / 49).epsilon(1e-9));
  CHECK(forward(beside, 1) == Approx(10 * kMs * 56 / 50).epsilon(1e-9));  // the one server is on worker 0's host
  CHECK(forward("{server_cores: 7, servers: all}", 1) == Approx(10 * kMs * 56 / 49).epsilon(1e-9));
}

TEST_CASE("connections: all messages at once, one after the other, or the first layer's first", "[parameter_server]") {
  // One worker, free network but for the rate: layers A (2 MB) and B (11 MB). Backward B ends at 2 + 3 + 4 = 9 plus the
  // first pulls. From the second step on: B is pushed first, 11 ms, and A, ready 4 later, either shares the link, or
  // waits, or (not interrupting what is on its way) waits as well; what differs is the way back.
  const auto layers = [](std::int64_t batch) {
    return testing::chain(
        {testing::layer("A", 2 * kMs, 4 * kMs, 0, {2 * kMB}), testing::layer("B", 3 * kMs, 4 * kMs, 0, {11 * kMB})},
        batch);
  };
  const testing::Star star(2, 1e9, 0);
  const auto executed = [&](const char* connection) {
    return run(star, 1, std::string("{mode: async, connection: ") + connection + "}", {}, layers);
  };
  const Executed together = executed("concurrent"), ordered = executed("in_order"), first = executed("priority");
  // Step 0. Together: A and B share the link: A takes 4, B 13. In order of the layers: A 2, B 13. Then A runs 2 until
  // 6 or 4, B 13..16, backward B 16..20, A 20..24.
  together.check("pull A", 0, 0, 0, 4);
  ordered.check("pull A", 0, 0, 0, 2);
  first.check("pull A", 0, 0, 0, 2);
  for (const Executed* e : {&together, &ordered, &first}) e->check("backward A", 0, 0, 20, 24);
  // Push B from 20, push A from 24. Together: 4 MB of B are gone by 24; A shares until 28, B goes on until 33. In line:
  // B until 31, A until 33.
  together.check("push A", 0, 0, 24, 28);
  together.check("push B", 0, 0, 20, 33);
  for (const Executed* e : {&ordered, &first}) e->check("push A", 0, 0, 31, 33);
}

TEST_CASE("parameters in device memory do not move where they are used", "[parameter_server]") {
  // Two workers, a server on each device, every layer in halves: a worker pulls 5 MB from the other and pushes 5 MB.
  const testing::Star star(2, 1e9, 1 * kMs);
  const Executed executed =
      run(star, 2, "{servers: all, location: device, placement: even, granularity: model, connection: concurrent}");
  CHECK(executed.result.metrics.bytes == Approx(4 * 5 * kMB));
  // 6 + 30 + 6, by when the worker's own half is in the sum; the other's, 0.03, and half the update, 1: 43.03.
  CHECK(executed.result.iteration == Approx(43.03 * kMs).margin(1e-9));
}

TEST_CASE("servers beside workers are on their nodes' processors, where there are such", "[parameter_server]") {
  // Two devices of one node on a star, and its processors, which update in memory of their own: even a lone worker
  // pulls and pushes, 11 each.
  const testing::Star star(3, 1e9, 1 * kMs);
  Cluster cluster = star.cluster();
  for (Device& device : cluster.devices) device.node = "node";
  cluster.devices.back().trains = false;
  CHECK(run(cluster, 1, "{location: colocated}", {}, one_layer).result.metrics.bytes == Approx(2 * 10 * kMB));
  const Executed executed = run(cluster, 2, "{servers: all, location: colocated}", {}, one_layer);
  executed.check("pull A", 0, 0, 0, 21);
  CHECK(executed.result.iteration == Approx(74.12 * kMs).margin(1e-9));  // as with a server on a host of its own
  // Which is what these are not.
  CHECK_THROWS_WITH(run(cluster, 2, "{}", {}, one_layer), Catch::Matchers::Contains("leave 0 of the platform's"));
}

}  // namespace epocast::parameter_server_test
