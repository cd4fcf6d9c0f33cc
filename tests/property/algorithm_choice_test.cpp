// The choice of an algorithm is sound if no other that the group can run is faster. It is made from predictions; here
// every algorithm is simulated, on every shipped platform, and the one taken must be within 5 % of the fastest.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "sim/network_plan.hpp"
#include "tests/support/simulate.hpp"

using namespace epocast;

namespace {

using A = CollectiveAlgorithm;
using Op = CollectiveOp;

CyclicTaskGraph one_collective(const std::vector<DeviceId>& devices, Op op, A algorithm, double bytes) {
  CyclicTaskGraph graph;
  const GroupId group = graph.add_group("ranks", devices);
  const QueueId queue = graph.add_queue("queue", group, QueueRole::communication, Discipline::program_order);
  graph.collective(queue, {.op = op, .algorithm = algorithm, .group = group, .bytes = Bytes(bytes)},
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
  if (cluster.name.starts_with("ideal_star"))  // elsewhere trees of more than 64 ranks are left out
    for (const std::size_t count : {100, 250}) add(count, 1, all);
  for (const std::size_t on_each : {2, 3, 4, 5, 7, 8, 16})
    for (const std::size_t from_nodes : {1, 2, 3, 4}) {
      add(from_nodes, on_each, all);
      add(from_nodes, on_each, from_nodes * on_each - 1);  // one fewer on the last
    }
  return out;
}

/// What is slower than it need be, a line each.
std::string slow_choices(const std::string& platform, const std::vector<Op>& ops, const std::vector<double>& sizes) {
  const Cluster cluster = testing::platform(platform);
  SimEngine engine(cluster.platform_file.string());
  std::string out;
  for (const auto& group : groups(cluster))
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
          out += fmt::format("{} {} ranks from {} to {}, {} of {} B: {} takes {:.4g} s, {} {:.4g} s;{}\n", platform,
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
    return slow_choices(platforms[static_cast<std::size_t>(p)], ops, sizes);
  });
  for (const std::string& text : found) CHECK(text == "");
}

}  // namespace

TEST_CASE("the algorithm taken for an all-reduce is the fastest on every shipped platform", "[collective][choice]") {
  check_choices({Op::all_reduce}, {1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6, 64e6, 256e6, 1e9});
}

TEST_CASE("the algorithm taken for other operations is the fastest on every shipped platform", "[collective][choice]") {
  check_choices(
      {Op::reduce_scatter, Op::all_gather, Op::all_to_all, Op::broadcast, Op::reduce, Op::gather, Op::scatter},
      {1e3, 32e3, 1e6, 32e6, 1e9});
}
