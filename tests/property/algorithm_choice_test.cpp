// The choice of an algorithm is sound if no other that the group can run is faster. It is made from predictions; here
// every algorithm is simulated, on every shipped platform, and the one taken must be within 5 % of the fastest.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "platforms/pod_generator.hpp"
#include "sim/network_plan.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::algorithm_choice_test {

namespace {

using A = CollectiveAlgorithm;
using Op = CollectiveOp;

CyclicTaskGraph one_collective(const std::vector<DeviceId>& devices, Op op, A algorithm, double bytes,
                               CollectiveLevel level = CollectiveLevel::automatic) {
  CyclicTaskGraph graph;
  const GroupId group = graph.add_group("ranks", devices);
  const QueueId queue = graph.add_queue("queue", group, QueueRole::communication, Discipline::program_order);
  graph.collective(queue, {.op = op, .algorithm = algorithm, .level = level, .group = group, .bytes = Bytes(bytes)},
                   {"collective", ""});
  return graph;
}

/// Groups of a platform's devices: one on each node, several on each, all of some nodes, powers of two and not, and
/// unequally many on the nodes.
std::set<std::vector<DeviceId>> groups(const Cluster& cluster) {
  std::vector<std::vector<DeviceId>> nodes;
  std::map<std::string, std::size_t> number;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    const auto [place, is_new] = number.try_emplace(cluster.devices[d].node, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[place->second].push_back(static_cast<DeviceId>(d));
  }
  std::set<std::vector<DeviceId>> out;
  const auto add = [&](std::size_t from_nodes, std::size_t on_each, std::size_t at_most) {
    std::vector<DeviceId> group;
    for (std::size_t n = 0; n < std::min(from_nodes, nodes.size()); ++n)
      for (std::size_t i = 0; i < std::min(on_each, nodes[n].size()); ++i) group.push_back(nodes[n][i]);
    group.resize(std::min(group.size(), at_most));
    if (group.size() > 1) out.insert(group);
  };
  const std::size_t all = cluster.devices.size();
  for (const std::size_t count : {2, 3, 4, 6, 8, 13, 16, 31, 64}) add(count, 1, all);
  for (const std::size_t count : {100, 250}) add(count, 1, all);
  for (const std::size_t on_each : {2, 3, 4, 5, 7, 8, 16})
    for (const std::size_t from_nodes : {1, 2, 3, 4}) {
      add(from_nodes, on_each, all);
      add(from_nodes, on_each, from_nodes * on_each - 1);  // one fewer on the last
    }
  return out;
}

/// What is slower than it need be, a line each.
std::string slow_choices(const Cluster& cluster, const std::set<std::vector<DeviceId>>& groups,
                         const std::vector<Op>& ops, const std::vector<double>& sizes) {
  SimEngine engine(cluster);
  std::string out;
  for (const auto& group : groups)
    for (const Op op : ops)
      for (const double bytes : sizes) {
        const auto seconds = [&](A algorithm) {
          return execute(one_collective(group, op, algorithm, bytes), cluster, engine, {.iterations = 1});
        };
        double best = 1e99;
        std::string name, all;
        for (const std::string& candidate : collective_algorithm_names()) {
          if (!supports(parse_collective_algorithm(candidate), op)) continue;
          try {
            const double time = seconds(parse_collective_algorithm(candidate)).total;
            all += fmt::format(" {} {:.4g}", candidate, time);
            if (time < best) name = candidate, best = time;
          } catch (const std::invalid_argument&) {  // hierarchical, on nodes with unequally many ranks
          }
        }
        const ExecutionResult chosen = seconds(A::automatic);
        if (chosen.total > best * 1.05)
          out += fmt::format("{} {} ranks from {} to {}, {} of {} B: {} takes {:.4g} s, {} {:.4g} s;{}\n", cluster.name,
                             group.size(), group.front(), group.back(), to_string(op), bytes,
                             to_string(*chosen.algorithms[0]), chosen.total, name, best, all);
      }
  return out;
}

std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const PlatformInfo& info : list_platforms(std::filesystem::path(EPOCAST_SOURCE_DIR) / "platforms"))
    names.push_back(info.name);
  return names;
}

/// Looks at all shipped platforms, each in a process of its own.
void check_choices(const std::vector<Op>& ops, std::vector<double> sizes) {
  // Between the ends only numbers change, not what the program does; and these are 6 of 7 minutes under a sanitizer.
  if (EPOCAST_SANITIZED) sizes = {sizes.front(), sizes.back()};
  const std::vector<std::string> platforms = shipped();
  CHECK(platforms.size() >= 16);
  const auto found = testing::in_children(static_cast<int>(platforms.size()), [&](int p) {
    const Cluster cluster = testing::platform(platforms[static_cast<std::size_t>(p)]);
    return slow_choices(cluster, groups(cluster), ops, sizes);
  });
  for (const std::string& text : found) CHECK(text == "");
}

}  // namespace

TEST_CASE("the algorithm taken for an all-reduce is the fastest on every shipped platform", "[collective][choice]") {
  check_choices({Op::all_reduce}, {1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6, 64e6, 256e6, 1e9});
}

TEST_CASE("the algorithm taken on pods is the fastest for groups of hundreds too", "[collective][choice]") {
  // One rail of every node, two rails, all; on one leaf switch, and on two with half the cables between them.
  const auto found = testing::in_children(2, [&](int p) {
    const int nodes = p == 0 ? 20 : 40;
    const testing::TemporaryPlatform pod(pod_platform("dgx_h100_pod", nodes, 1 + p));
    std::set<std::vector<DeviceId>> some;
    for (const int on_each : {2, 5, 8}) {
      std::vector<DeviceId> group;
      for (int node = 0; node < nodes; ++node)
        for (int i = 0; i < on_each; ++i) group.push_back(static_cast<DeviceId>(8 * node + i));
      if (group.size() > 64) some.insert(group);
    }
    return slow_choices(pod.cluster(), some, {Op::all_reduce, Op::broadcast}, {1e3, 32e3, 1e6, 32e6, 1e9});
  });
  for (const std::string& text : found) CHECK(text == "");
}

/// Streams stand for messages: what they take in groups where both are cheap.
TEST_CASE("trees as streams take what their messages take", "[collective]") {
  const auto found = testing::in_children(1, [](int) {
    const testing::TemporaryPlatform pod(pod_platform("dgx_h100_pod", 10));
    std::vector<DeviceId> all(80);
    std::iota(all.begin(), all.end(), DeviceId{0});
    SimEngine engine(pod.cluster());
    std::string out;
    for (const double bytes : {1e3, 32e3, 1e6, 32e6, 1e9}) {
      const auto seconds = [&](CollectiveLevel level) {
        CyclicTaskGraph graph = one_collective(all, Op::all_reduce, A::double_binary_tree, bytes, level);
        return execute(graph, pod.cluster(), engine, {.iterations = 1}).total;
      };
      const double ratio = seconds(CollectiveLevel::flow) / seconds(CollectiveLevel::message);
      // Chunks of both trees that meet on a link wait for each other, which streams do not.
      const double most = bytes <= 1e6 ? 0.03 : 0.2;
      if (std::abs(ratio - 1) > most) out += fmt::format("{} B: {:.3f}\n", bytes, ratio);
    }
    return out;
  });
  CHECK(found.at(0) == "");
}

TEST_CASE("the algorithm taken for other operations is the fastest on every shipped platform", "[collective][choice]") {
  check_choices(
      {Op::reduce_scatter, Op::all_gather, Op::all_to_all, Op::broadcast, Op::reduce, Op::gather, Op::scatter},
      {1e3, 32e3, 1e6, 32e6, 1e9});
}

}  // namespace epocast::algorithm_choice_test
