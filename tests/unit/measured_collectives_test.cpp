#include "costmodels/measured_collectives.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "experiments/scenario.hpp"
#include "strategies/register.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::measured_collectives_test {

namespace epocast {
namespace {

using Catch::Contains;

/// 10 us a step and 1 ns per byte on the wire, measured at 1 MB over 2 and 4 ranks.
NetworkFit fit_of(CollectiveOp op, const std::string& library = "library") {
  NetworkFit fit;
  fit.op = op;
  fit.library = library;
  fit.alpha = {"alpha", "s", 1e-5, 1e-5, 1e-5};
  fit.knots = {1e6};
  fit.betas = {{"beta", "s/B", 1e-9, 1e-9, 1e-9}};
  fit.points = {{op, library, 2, 1e6, Seconds(1e-3), 0}, {op, library, 4, 1e6, Seconds(2e-3), 0}};
  return fit;
}

MeasuredCollectives measured(std::vector<NetworkFit> fits, CollectiveScope scope = CollectiveScope::everywhere,
                             const std::string& library = "") {
  NetworkCalibration calibration;
  calibration.fits = std::move(fits);
  return {std::move(calibration), "mine", library, scope, ConfigNode::load_text("mine", "study.yaml")};
}

CyclicTaskGraph benchmark(const Cluster& cluster, int workers, const std::string& options, CollectiveLevel level) {
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const CollectiveAlgorithm algorithm =
      options.find("all_to_all") != std::string::npos ? CollectiveAlgorithm::pairwise : CollectiveAlgorithm::ring;
  return builtin_strategies()
      .make("collective_benchmark", node, node)
      ->compile({cluster, devices, workers, {}, {.algorithm = algorithm, .level = level}})
      .graph;
}

}  // namespace

TEST_CASE("a measured collective takes its time, sends its algorithm's bytes and loads no link", "[calibration]") {
  // A ring of 4: 6 steps of 10 us, and 3/2 of 1 MB at 1 ns a byte: 1.56 ms. It sends 4 x 3/2 MB. The platform's links
  // of 1 kB/s would take half an hour.
  const testing::Star star(4, 1e3, 5e-6);
  for (const CollectiveLevel level : {CollectiveLevel::automatic, CollectiveLevel::message}) {
    CyclicTaskGraph graph = benchmark(star.cluster(), 4, "bytes: 1 MB", level);
    const MeasuredCollectives times = measured({fit_of(CollectiveOp::all_reduce)});
    graph.tune_collectives(
        [&](Collective& work, const Group& group) { work.measured = times.time(work, group, star.cluster()); });
    std::vector<testing::Run> runs;
    for (const bool fold : {false, true}) runs.push_back({graph, {.iterations = 5, .fold = fold}});
    const auto results = testing::simulate(star.cluster(), runs);
    CHECK(results[1].folded);
    for (const ExecutionResult& result : results) {
      CHECK(result.total == Approx(5 * 1.56e-3).epsilon(1e-9));
      REQUIRE(result.bound);
      CHECK(result.bound->seconds == Approx(1.56e-3).epsilon(1e-9));
      CHECK(result.metrics.bytes == Approx(6e6));
      CHECK(testing::sum(result.totals.sent) / static_cast<double>(result.iterations_simulated) == Approx(6e6));
      CHECK(testing::sum(result.totals.on_link) == 0);
      CHECK(result.metrics.max_link_utilization == 0);
    }
  }
}

TEST_CASE("halves of an all-reduce are derived from it, and it from them", "[calibration]") {
  const MeasuredCollectives whole = measured({fit_of(CollectiveOp::all_reduce)});
  CHECK(whole.time(CollectiveOp::all_reduce, 4, 1e6).value == Approx(1.56e-3));
  CHECK(whole.time(CollectiveOp::reduce_scatter, 4, 1e6).value == Approx(0.78e-3));
  CHECK(whole.time(CollectiveOp::all_gather, 4, 1e6).value == Approx(0.78e-3));
  // 3 steps and 3/4 of the bytes each.
  const MeasuredCollectives halves = measured({fit_of(CollectiveOp::reduce_scatter), fit_of(CollectiveOp::all_gather)});
  CHECK(halves.time(CollectiveOp::all_reduce, 4, 1e6).value == Approx(1.56e-3));
  CHECK(whole.time(CollectiveOp::all_reduce, 4, 0).value == Approx(60e-6).epsilon(1e-4));
  CHECK_THAT(testing::message([&] { whole.time(CollectiveOp::all_to_all, 4, 1e6); }),
             Contains("study.yaml:1:1:") && Contains("'mine' has no times of all_to_all") &&
                 Contains("of all_reduce") && Contains("epocast calibrate network"));
}

TEST_CASE("of several libraries one has to be chosen", "[calibration]") {
  const std::vector<NetworkFit> fits{fit_of(CollectiveOp::all_reduce, "A"), fit_of(CollectiveOp::all_reduce, "B")};
  CHECK_THAT(testing::message([&] { measured(fits).time(CollectiveOp::all_reduce, 4, 1e6); }),
             Contains("several libraries: A, B") && Contains("library: A"));
  CHECK(measured(fits, CollectiveScope::everywhere, "B").time(CollectiveOp::all_reduce, 4, 1e6).value ==
        Approx(1.56e-3));
}

TEST_CASE("a calibration can hold inside nodes or between them only", "[calibration]") {
  Cluster cluster = testing::cluster_of(4);
  for (std::size_t d = 0; d < 4; ++d) cluster.devices[d].node = d < 2 ? "a" : "b";
  const auto is_measured = [&](int workers, CollectiveScope scope) {
    const CyclicTaskGraph graph = benchmark(cluster, workers, "bytes: 1 MB", CollectiveLevel::automatic);
    const auto& task = graph.tasks().front();
    return measured({fit_of(CollectiveOp::all_reduce)}, scope)
        .time(std::get<Collective>(task.work), graph.group(task.ranks), cluster)
        .has_value();
  };
  CHECK(is_measured(2, CollectiveScope::within_node));
  CHECK_FALSE(is_measured(4, CollectiveScope::within_node));
  CHECK_FALSE(is_measured(2, CollectiveScope::across_nodes));
  CHECK(is_measured(4, CollectiveScope::across_nodes));
}

TEST_CASE("what lies outside the measurements or is derived is said", "[calibration]") {
  const Cluster cluster = testing::cluster_of(8);
  const MeasuredCollectives whole = measured({fit_of(CollectiveOp::all_reduce)});
  const auto caveats = [&](int workers, const std::string& options) {
    return whole.caveats(benchmark(cluster, workers, options, CollectiveLevel::automatic), cluster);
  };
  CHECK(caveats(4, "bytes: 1 MB").empty());
  REQUIRE(caveats(8, "bytes: 1 MB").size() == 1);
  CHECK_THAT(caveats(8, "bytes: 1 MB").front(),
             Contains("over 8 ranks; measured were 976.6 KiB to 976.6 KiB and 2 to 4 ranks"));
  CHECK_THAT(caveats(4, "bytes: 1 kB").at(0), Contains("1 of 1 collectives are extrapolated"));
  CHECK_THAT(caveats(4, "{bytes: 1 MB, operation: all_gather}").at(0), Contains("half of an all_reduce"));
}

NetworkFit sends(int nodes) {
  NetworkFit fit = fit_of(CollectiveOp::send);
  fit.points = {{CollectiveOp::send, "library", 2, 1e6, Seconds(1e-3), 0, nodes}};
  return fit;
}

/// One message of 1 MB from each device of `from` to that of `to`.
CyclicTaskGraph messages(const std::vector<DeviceId>& from, const std::vector<DeviceId>& to,
                         const MeasuredCollectives& times) {
  CyclicTaskGraph graph;
  const GroupId senders = graph.add_group("senders", from), receivers = graph.add_group("receivers", to);
  const TaskId sent = graph.transfer(senders, QueueId::none, {senders, receivers, Bytes(1e6)}, {"send", ""});
  graph.after(sent, sent, 1);
  graph.measure_messages([&](Bytes bytes) {
    return MeasuredMessage{times.message_time(bytes.value, true), times.message_time(bytes.value, false)};
  });
  return graph;
}

TEST_CASE("a measured message takes its time alone, and contends with others", "[calibration]") {
  // 10 us and 1 MB at 1 ns a byte: 1.01 ms, of which links of 2 GB/s are busy for 0.5 ms. Two that go to one device
  // share its link for 1 ms, after 0.51 ms; the star's latency is within.
  const testing::Star star(4, 2e9, 5e-6);
  const MeasuredCollectives times = measured({sends(2)});
  const auto total = [&](const std::vector<DeviceId>& from, const std::vector<DeviceId>& to, bool fold) {
    const auto result =
        testing::simulate(star.cluster(), {{messages(from, to, times), {.iterations = 5, .fold = fold}}}).front();
    CHECK(result.metrics.bytes == Approx(1e6 * static_cast<double>(from.size())));
    REQUIRE(result.bound);
    CHECK(result.bound->seconds <= result.total / 5 * (1 + 1e-9));
    return result.total / 5;
  };
  CHECK(total({DeviceId(0)}, {DeviceId(1)}, false) == Approx(1.01e-3).epsilon(1e-9));
  for (const bool fold : {false, true})
    CHECK(total({DeviceId(0), DeviceId(1)}, {DeviceId(2), DeviceId(3)}, fold) == Approx(1.01e-3).epsilon(1e-9));
  CHECK(total({DeviceId(0), DeviceId(1)}, {DeviceId(2)}, false) == Approx(1.51e-3).epsilon(1e-9));
}

TEST_CASE("messages are measured where they run, and faster links are not made slower than their bytes",
          "[calibration]") {
  CHECK_FALSE(measured({sends(2)}).message_time(1e6, true));  // only between nodes
  CHECK(measured({sends(2)}).message_time(1e6, false)->value == Approx(1.01e-3));
  CHECK_FALSE(measured({sends(1)}, CollectiveScope::across_nodes).message_time(1e6, true));
  CHECK_FALSE(measured({fit_of(CollectiveOp::all_reduce)}).message_time(1e6, false));
  // Links of 0.5 GB/s need 2 ms for what was measured in 1.01: their rate stands, and no latency is added.
  const testing::Star slow(2, 0.5e9, 5e-6);
  const auto result = testing::simulate(
      slow.cluster(), {{messages({DeviceId(0)}, {DeviceId(1)}, measured({sends(2)})), {.iterations = 5}}});
  CHECK(result.front().total == Approx(5 * 2e-3).epsilon(1e-9));
}

TEST_CASE("a calibration of messages says nothing of collectives, and stands beside one of these", "[calibration]") {
  const Cluster cluster = testing::cluster_of(4);
  const CyclicTaskGraph graph = benchmark(cluster, 4, "bytes: 1 MB", CollectiveLevel::automatic);
  const auto& task = graph.tasks().front();
  CHECK_FALSE(measured({sends(2)}).time(std::get<Collective>(task.work), graph.group(task.ranks), cluster));
  CHECK_FALSE(measured({sends(2)}).excludes(measured({fit_of(CollectiveOp::all_reduce)})));
  CHECK(measured({sends(2)}).excludes(measured({sends(1), fit_of(CollectiveOp::all_reduce)})));
  CHECK(measured({sends(2)}).caveats(messages({DeviceId(0)}, {DeviceId(1)}, measured({sends(2)})), cluster).empty());
}

}  // namespace epocast

}  // namespace epocast::measured_collectives_test
