// Where the choice of algorithms is all that tells ranks of a large step apart, it is made among those that do not.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>
#include <vector>

#include "tests/support/simulate.hpp"

namespace epocast::symmetric_algorithms_test {

using A = CollectiveAlgorithm;

namespace {

constexpr int kRanks = 12;  // no power of two: a few of them hand their vectors to others before they are halved

/// Devices `first` that send `messages` to as many others while they sum `bytes`, `sums` times.
CyclicTaskGraph sums_and_messages(const std::vector<DeviceId>& first, const std::vector<DeviceId>& second, int messages,
                                  A algorithm, double bytes, int sums = 1) {
  CyclicTaskGraph graph;
  const GroupId senders = graph.add_group("senders", first), receivers = graph.add_group("receivers", second);
  const QueueId compute = graph.add_queue("compute", senders, QueueRole::compute, Discipline::program_order);
  const QueueId wire = graph.add_queue("wire", senders, QueueRole::communication, Discipline::fifo);
  const TaskId begin = graph.compute(compute, Seconds(1e-3), {"begin", ""});
  TaskId last = begin;
  for (int k = 0; k < sums; ++k) {
    const TaskId sum =
        graph.collective(wire, {.algorithm = algorithm, .group = senders, .bytes = Bytes(bytes)}, {"all-reduce", ""});
    graph.after(last, sum);
    last = sum;
  }
  graph.after(last, begin, 1);
  TaskId before = begin;
  for (int m = 0; m < messages; ++m) {
    const TaskId sent =
        graph.transfer(senders, QueueId::none, {senders, receivers, Bytes(1e4)}, {"send", std::to_string(m)});
    graph.after(before, sent);
    before = sent;
  }
  graph.after(before, begin, 1);
  return graph;
}

ExecutionResult run(const Cluster& cluster, int messages, A algorithm, double bytes, bool fold = true) {
  std::vector<DeviceId> first(kRanks), second(kRanks);
  std::iota(first.begin(), first.end(), 0);
  std::iota(second.begin(), second.end(), kRanks);
  return testing::simulate(cluster, sums_and_messages(first, second, messages, algorithm, bytes),
                           {.iterations = 3, .fold = fold});
}

}  // namespace

TEST_CASE("a large step takes algorithms in which all ranks do the same, and says so", "[executor]") {
  constexpr double kBytes = 1e4;
  const testing::Star star(2 * kRanks, 1e10, 1e-5);
  const int few = 20, many = static_cast<int>(kManyExecutions) / kRanks;

  const ExecutionResult small = run(star.cluster(), few, A::automatic, kBytes);
  CHECK_FALSE(small.folded);
  CHECK(small.remarks.empty());
  CHECK(small.algorithms[1] == A::recursive_doubling);
  CHECK_FALSE(run(star.cluster(), few, A::recursive_doubling, kBytes).folded);
  CHECK(run(star.cluster(), few, A::bruck, kBytes).folded);

  const ExecutionResult large = run(star.cluster(), many, A::automatic, kBytes);
  CHECK(large.folded);
  CHECK(large.remarks.size() == 1);
  CHECK(large.algorithms[1] == A::bruck);
  CHECK(large.total == Approx(run(star.cluster(), many, A::bruck, kBytes).total).epsilon(1e-12));

  const ExecutionResult unfolded = run(star.cluster(), many, A::automatic, kBytes, false);
  CHECK_FALSE(unfolded.folded);
  CHECK(unfolded.total == Approx(large.total).epsilon(1e-9));
}

TEST_CASE("flows of collectives of many ranks make a step large, too", "[executor]") {
  for (const int ranks : {96, 192}) {  // no powers of two
    const testing::Star star(2 * ranks, 1e10, 1e-5);
    std::vector<DeviceId> first(static_cast<std::size_t>(ranks)), second(first.size());
    std::iota(first.begin(), first.end(), 0);
    std::iota(second.begin(), second.end(), ranks);
    const int almost_many = static_cast<int>(0.97 * kManyExecutions) / ranks;
    const ExecutionResult result = testing::simulate(
        star.cluster(), sums_and_messages(first, second, almost_many, A::recursive_doubling, 1e5), {.iterations = 3});
    const bool large = ranks > static_cast<int>(kManyRanks);
    CHECK(result.folded == large);
    CHECK(result.exact != large);
    CHECK(result.remarks.size() == (large ? 1 : 0));
  }
}

TEST_CASE("of fewer ranks, flows make a step large where they are very many", "[executor]") {
  constexpr int kFewer = 96, kSteps = 8;  // of recursive doubling: 2^6 ranks, and the others before and after
  const testing::Star star(2 * kFewer, 1e10, 1e-5);
  std::vector<DeviceId> first(kFewer), second(kFewer);
  std::iota(first.begin(), first.end(), 0);
  std::iota(second.begin(), second.end(), kFewer);
  for (const bool large : {false, true}) {
    const int sums = static_cast<int>((large ? 1.02 : 0.1) * kManyFlows) / (kFewer * kSteps) + 1;
    const ExecutionResult result = testing::simulate(
        star.cluster(), sums_and_messages(first, second, 1, A::recursive_doubling, 1e5, sums), {.iterations = 1});
    CHECK(result.folded == large);
    CHECK(result.exact != large);
    CHECK(result.remarks.size() == (large ? 1 : 0));
  }
}

TEST_CASE("ranks that stand for each other, few of them alike, do so in lock step where their flows are very many",
          "[executor]") {
  // All but one: whom a rank sends to, around the end, is on another node for each of its neighbours.
  const auto platform = testing::platform("dgx_a100_pod_4");
  std::vector<DeviceId> all(platform.devices.size() - 1);
  std::iota(all.begin(), all.end(), 0);
  const auto simulated = [&](int sums) {
    return testing::simulate(platform, sums_and_messages(all, all, 0, A::bruck, 1e6, sums), {.iterations = 1});
  };
  const int few = 10, many = static_cast<int>(kManyClassFlows) / 40;
  const ExecutionResult own = simulated(few);
  CHECK(own.folded);
  CHECK(own.exact);
  CHECK(own.remarks.empty());
  const ExecutionResult slowest = simulated(many);
  CHECK(slowest.folded);
  CHECK_FALSE(slowest.exact);
  CHECK(slowest.remarks.size() == 1);
  const double begin = 1e-3, ratio = static_cast<double>(many) / few;
  CHECK(slowest.total - begin >= (own.total - begin) * ratio * (1 - 1e-9));
  CHECK(slowest.total - begin < 2 * (own.total - begin) * ratio);
}

TEST_CASE("what is named is taken, in lock step where ranks would do it differently", "[executor]") {
  const testing::Star star(2 * kRanks, 1e10, 1e-5);
  const ExecutionResult named =
      run(star.cluster(), static_cast<int>(kManyExecutions) / kRanks, A::recursive_doubling, 1e5);
  CHECK(named.folded);
  CHECK_FALSE(named.exact);
  CHECK(named.remarks.size() == 1);
  CHECK(named.algorithms[1] == A::recursive_doubling);
}

TEST_CASE("ranks that share nodes do the same only if they send as much beyond them", "[executor]") {
  // Three nodes of two: a flat ring leaves a node with every second rank.
  const auto platform = testing::platform("dgx_a100_pod_4");
  std::vector<DeviceId> first, second;
  for (const int node : {0, 1, 2})
    for (const int gpu : {0, 1}) {
      first.push_back(8 * node + gpu);
      second.push_back(8 * node + 2 + gpu);
    }
  const int many = static_cast<int>(kManyExecutions / first.size());
  const ExecutionResult large =
      testing::simulate(platform, sums_and_messages(first, second, many, A::automatic, 1e3), {.iterations = 3});
  CHECK(large.folded);
  CHECK(large.algorithms[1] == A::hierarchical);
}

TEST_CASE("ranks of a large step that sit differently wait for the slowest, and the result says so", "[executor]") {
  // The first twelve GPUs fill a node and half of the next, so that some of their neighbours in a ring are far away.
  const auto platform = testing::platform("dgx_a100_pod_4");
  std::vector<DeviceId> first(kRanks), second(kRanks);
  std::iota(first.begin(), first.end(), 0);
  std::iota(second.begin(), second.end(), kRanks);
  const int few = 20, many = static_cast<int>(kManyExecutions) / kRanks;
  const auto simulated = [&](int messages, double bytes, bool fold) {
    return testing::simulate(platform, sums_and_messages(first, second, messages, A::ring, bytes),
                             {.iterations = 3, .fold = fold});
  };
  CHECK_FALSE(simulated(few, 1e6, true).folded);
  for (const double bytes : {1e3, 1e6, 1e9}) {
    const ExecutionResult slowest = simulated(many, bytes, true), each = simulated(many, bytes, false);
    CHECK(slowest.folded);
    CHECK_FALSE(slowest.exact);
    CHECK(slowest.remarks.size() == 1);
    CHECK_FALSE(each.folded);
    CHECK(each.exact);
    CHECK(slowest.metrics.bytes == Approx(each.metrics.bytes).epsilon(1e-9));
    CHECK(slowest.iteration >= each.iteration * (1 - 1e-9));
    CHECK(slowest.iteration <= each.iteration * 1.05);
  }
}

}  // namespace epocast::symmetric_algorithms_test
