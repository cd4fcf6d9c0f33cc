// Queueing theory knows some asynchronous loops exactly. Open queues: a source with exponential intervals (gamma noise
// of cv 1) feeds one server, as task graphs: source -> service, nothing leads back.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/support/simulate.hpp"

namespace epocast::queueing_test {

using testing::simulate;
using testing::Star;

namespace {

constexpr double kMB = 1e6;

struct Estimate {
  double mean = 0, half_width = 0;  ///< 99.9 % confidence
};

/// Batch means of correlated values; 20 batches, t(0.9995, 19) = 3.883.
Estimate batch_means(const std::vector<double>& values) {
  constexpr std::size_t kBatches = 20;
  const std::size_t size = values.size() / kBatches;
  std::vector<double> batch;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(b * size);
    batch.push_back(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(size), 0.0) / static_cast<double>(size));
  }
  const double mean = std::accumulate(batch.begin(), batch.end(), 0.0) / kBatches;
  double square = 0;
  for (const double b : batch) square += (b - mean) * (b - mean);
  return {mean, 3.883 * std::sqrt(square / (kBatches - 1) / kBatches)};
}

/// How long each customer waits: from the end of the source's firing to the beginning of the service. Arrivals are 1 s
/// apart on average, service takes `service` s. A deterministic service is a message: messages have no noise here.
Estimate waiting_time(double service, bool random_service) {
  const Star star(2, 1e6, 0);
  CyclicTaskGraph graph;
  const GroupId source = graph.add_group("source", {0}), sink = graph.add_group("sink", {1});
  const QueueId arrivals = graph.add_queue("arrivals", source, QueueRole::compute, Discipline::program_order);
  const TaskId arrival = graph.compute(arrivals, Seconds(1), {"arrival", ""});
  const TaskId served =
      random_service ? graph.compute(graph.add_queue("server", sink, QueueRole::server, Discipline::fifo),
                                     Seconds(service), {"service", ""})
                     : graph.transfer(source, QueueId::none, {source, sink, Bytes(service * kMB)}, {"service", ""});
  graph.after(arrival, served);
  constexpr std::int64_t kCustomers = 40'000;
  const ExecutionResult result = simulate(star.cluster(), graph,
                                          {.iterations = kCustomers,
                                           .exact = true,
                                           .noise = {.compute_cv = 1, .seed = 5, .kind = NoiseKind::gamma},
                                           .record_timeline = true});
  std::vector<double> arrived(kCustomers), begun(kCustomers);
  for (const Interval& i : result.timeline.intervals) {
    const auto n = static_cast<std::size_t>(i.iteration);
    (TaskId(i.task) == arrival ? arrived[n] : begun[n]) = TaskId(i.task) == arrival ? i.end : i.start;
  }
  std::vector<double> waits;
  for (std::size_t n = 1000; n < kCustomers; ++n) waits.push_back(begun[n] - arrived[n]);
  return batch_means(waits);
}

/// n equal workers compute for `work` s, then stand in line at one server for `service` s. The network is free.
ExecutionResult async(int workers, double work, double service, std::int64_t iterations, double push = 0,
                      bool in_turn = false) {
  const Star star(workers + 1, 1e9, 0);
  CyclicTaskGraph graph;
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 1);
  const GroupId group = graph.add_group("workers", devices), server = graph.add_group("server", {0});
  const QueueId own = graph.add_queue("own", group, QueueRole::compute, Discipline::program_order);
  const QueueId shared = graph.add_queue("shared", server, QueueRole::server, Discipline::fifo);
  const StoreId store = graph.add_store("parameters");
  const TaskId step = graph.compute(own, Seconds(work), {"step", ""});
  const QueueId interface = graph.add_queue("interface", server, QueueRole::communication, Discipline::fifo);
  const TaskId send =
      graph.transfer(group, in_turn ? interface : QueueId::none, {group, server, Bytes(push)}, {"push", ""});
  const TaskId update = graph.compute_for(group, shared, Seconds(service), {"update", ""});
  graph.after(step, send);
  graph.after(send, update);
  graph.after(update, step, 1);
  graph.set_version_effect(step, {store, VersionEffect::read_at_start});
  graph.set_version_effect(update, {store, VersionEffect::write_at_end});
  return simulate(star.cluster(), graph, {.iterations = iterations, .exact = true});
}

}  // namespace

TEST_CASE("M/M/1 and M/D/1: the time that customers wait", "[queueing][property]") {
  // Pollaczek (1930), Khinchin (1932): with arrivals at rate 1 and service of mean rho < 1 and coefficient of variation
  // c, customers wait rho^2 (1 + c^2) / (2 (1 - rho)) on average: c = 1 for M/M/1, c = 0 for M/D/1.
  for (const double rho : {0.4, 0.7})
    for (const bool random_service : {true, false}) {
      const Estimate wait = waiting_time(rho, random_service);
      const double expected = rho * rho * (random_service ? 2 : 1) / (2 * (1 - rho));
      INFO("rho " << rho << (random_service ? ", M/M/1" : ", M/D/1"));
      CHECK(std::abs(wait.mean - expected) < wait.half_width);
      CHECK(wait.half_width < 0.2 * expected);  // or else little has been tested
    }
}

TEST_CASE("n equal asynchronous workers: staleness n - 1, n times the throughput until the server is busy",
          "[queueing][property]") {
  // Work 10 ms, service 0.5 ms: a worker alone needs 10.5 ms, and the server serves all of 21. Beyond, it is the server
  // that takes n x 0.5 ms for a round.
  for (const int n : {1, 4, 16, 20, 21, 22, 32, 48}) {
    const ExecutionResult result = async(n, 10e-3, 0.5e-3, 60);
    INFO(n << " workers");
    REQUIRE(result.period);
    CHECK(result.iteration == Approx(std::max(10.5e-3, n * 0.5e-3)).epsilon(1e-9));
    CHECK(result.metrics.mean_staleness == n - 1);
    CHECK(result.metrics.max_staleness == n - 1);
    REQUIRE(static_cast<int>(result.staleness.histogram.size()) == n);
    CHECK(result.staleness.histogram.back() == 59 * n);  // every write after the first round
    REQUIRE(result.servers.size() == 1);
    CHECK(result.servers.front().utilization == Approx(std::min(1.0, n / 21.0)).epsilon(0.02));  // filling, emptying
  }
}

TEST_CASE("the server's network interface saturates at its bandwidth", "[queueing][property]") {
  // Work 10 ms, a push of 1 MB at 1 GB/s is 1 ms. Served in turn, 11 workers keep the link busy. Sharing it, equal
  // workers that start together push together for ever: 10 + n ms.
  for (const int n : {2, 8, 11, 12, 24, 40}) {
    INFO(n << " workers");
    const ExecutionResult in_turn = async(n, 10e-3, 0, 200, 1e6, true);
    CHECK(in_turn.iteration == Approx(std::max(11, n) * 1e-3).epsilon(1e-9));
    CHECK(in_turn.metrics.max_link_utilization == Approx(std::min(1.0, n / 11.0)).epsilon(1e-9));
    const ExecutionResult sharing = async(n, 10e-3, 0, 200, 1e6);
    CHECK(sharing.iteration == Approx((10 + n) * 1e-3).epsilon(1e-9));
  }
}

}  // namespace epocast::queueing_test
