// Placement of operator graphs against brute force on random graphs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "strategies/placement/list_placement.hpp"
#include "strategies/placement/memory_ledger.hpp"
#include "strategies/placement/pardnn.hpp"
#include "strategies/placement/refinement.hpp"
#include "tests/support/random_operators.hpp"

namespace epocast::placement_property_test {

using namespace epocast::testing;

namespace {

bool has_edge(const PlacementGraph& graph, std::uint32_t from, std::uint32_t to) {
  return std::find(graph.to.begin() + graph.out_begin[from], graph.to.begin() + graph.out_begin[from + 1], to) !=
         graph.to.begin() + graph.out_begin[from + 1];
}

/// The longest path that begins at a node, over all paths.
Ticks longest_from(const PlacementGraph& graph, const std::vector<Ticks>& transfer, const std::set<std::uint32_t>& gone,
                   std::uint32_t n) {
  Ticks longest = 0;
  for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e)
    if (!gone.contains(graph.to[e]))
      longest = std::max(longest, transfer[e] + longest_from(graph, transfer, gone, graph.to[e]));
  return longest + graph.time[n];
}

/// Memory of a device at a moment, from what is written in replay.hpp, node by node.
double memory_at(const PlacementGraph& graph, const Placement& placement, const ReplayResult& r, std::int16_t device,
                 Ticks t) {
  double bytes = 0;
  const auto lies = [&](Ticks begin, Ticks end) { return begin <= t && t < end; };
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    Ticks sent = 0;
    for (const OutputTransfer& transfer : r.transfers)
      if (transfer.node == n) sent = std::max(sent, transfer.end);
    if (placement[n] == device && graph.lifetime[n] == Lifetime::residual) {
      bytes += graph.memory[n];
      continue;
    }
    Ticks read = 0;
    for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e)
      if (placement[graph.to[e]] == device && graph.bytes[e] > 0) read = std::max(read, r.end[graph.to[e]]);
    if (placement[n] == device) {
      if (lies(r.start[n], std::max({r.end[n], sent, read}))) bytes += graph.memory[n];
    } else {
      for (const OutputTransfer& transfer : r.transfers)
        if (transfer.node == n && transfer.to == device && lies(transfer.begin, std::max(transfer.end, read)))
          bytes += transfer.bytes;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("slicing: clusters are disjoint paths that cover the graph; primaries are critical paths of what is left") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const PlacementGraph graph = random_operators(random, 1 + random() % 12, 5);
    const int devices = 1 + static_cast<int>(random() % 3);
    const std::vector<Ticks> transfer = transfer_times(graph, unit_machine(devices));
    const Clusters clusters = slice(graph, transfer, devices);
    std::set<std::uint32_t> seen;
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      const auto path = clusters.nodes(c);
      if (c < static_cast<std::size_t>(devices)) {
        Ticks longest = 0, length = 0;
        for (std::uint32_t n = 0; n < graph.size(); ++n)
          if (!seen.contains(n)) longest = std::max(longest, longest_from(graph, transfer, seen, n));
        for (std::size_t i = 0; i < path.size(); ++i) {
          length += graph.time[path[i]];
          Ticks most = 0;
          for (std::uint32_t e = graph.out_begin[path[i]]; e < graph.out_begin[path[i] + 1]; ++e)
            if (i + 1 < path.size() && graph.to[e] == path[i + 1]) most = std::max(most, transfer[e]);
          length += most;
        }
        CHECK(length == longest);
      } else {
        CHECK(!path.empty());
      }
      for (std::size_t i = 0; i < path.size(); ++i) {
        CHECK(seen.insert(path[i]).second);
        CHECK(clusters.of[path[i]] == c);
        if (i > 0) CHECK(has_edge(graph, path[i - 1], path[i]));
      }
    }
    CHECK(seen.size() == graph.size());
  }
}

TEST_CASE("linear clustering: every cluster is a critical path of what is left") {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const PlacementGraph graph = random_operators(random, 1 + random() % 12, 5);
    const std::vector<Ticks> transfer = transfer_times(graph, unit_machine(1));
    const Clusters clusters = linear_clustering(graph, transfer);
    std::set<std::uint32_t> seen;
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      Ticks longest = 0;
      for (std::uint32_t n = 0; n < graph.size(); ++n)
        if (!seen.contains(n)) longest = std::max(longest, longest_from(graph, transfer, seen, n));
      CHECK(longest_from(graph, transfer, seen, clusters.nodes(c).front()) == longest);
      for (const std::uint32_t n : clusters.nodes(c)) CHECK(seen.insert(n).second);
    }
    CHECK(seen.size() == graph.size());
  }
}

TEST_CASE("levels are longest paths; Fenwick sums are sums") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const PlacementGraph graph = random_operators(random, 1 + random() % 12, 6);
    const std::vector<Ticks> transfer = transfer_times(graph, unit_machine(1));
    const Levels levels = compute_levels(graph, transfer);
    std::vector<Ticks> top(graph.size(), 0);
    const std::function<void(std::uint32_t, Ticks)> walk = [&](std::uint32_t n, Ticks length) {
      top[n] = std::max(top[n], length);
      for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e)
        walk(graph.to[e], length + graph.time[n] + transfer[e]);
    };
    for (std::uint32_t n = 0; n < graph.size(); ++n) walk(n, 0);
    for (std::uint32_t n = 0; n < graph.size(); ++n) {
      CHECK(levels.top[n] == top[n]);
      CHECK(levels.bottom[n] == longest_from(graph, transfer, {}, n));
    }
    LevelLoads loads(graph, levels.top, 3);
    std::vector<int> on(graph.size());
    for (std::uint32_t n = 0; n < graph.size(); ++n)
      loads.add(n, on[n] = static_cast<int>(random() % 3), graph.time[n]);
    const auto begin = static_cast<Ticks>(random() % 30) * kUnit;
    const Ticks end = begin + static_cast<Ticks>(random() % 40) * kUnit;
    std::vector<Ticks> sum(3, 0), naive(3, 0);
    loads.sum(begin, end, sum);
    for (std::uint32_t n = 0; n < graph.size(); ++n)
      if (levels.top[n] >= begin && levels.top[n] < end) naive[static_cast<std::size_t>(on[n])] += graph.time[n];
    CHECK(sum == naive);
    CHECK(loads.total(begin, end) == naive[0] + naive[1] + naive[2]);
  }
}

TEST_CASE("replay: order, work and arrivals hold; nothing is idle that could run; memory is what lies there") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const PlacementGraph graph = random_operators(random, 1 + random() % 20, 6);
    const PlacementMachine machine = unit_machine(1 + static_cast<int>(random() % 3));
    Placement placement(graph.size());
    for (std::int16_t& d : placement) d = static_cast<std::int16_t>(random() % static_cast<unsigned>(machine.devices));
    const Levels levels = compute_levels(graph, transfer_times(graph, machine));
    ReplayOptions options;
    options.links = trial % 2 == 0 ? Links::apart : Links::copy_engines;
    options.order = trial % 4 < 2 ? QueueOrder::fifo : QueueOrder::priority;
    options.priority = levels.bottom;
    const ReplayResult r = replay(graph, machine, placement, options);
    for (std::uint32_t n = 0; n < graph.size(); ++n) {
      CHECK(r.end[n] == r.start[n] + graph.time[n]);
      Ticks ready = 0;
      for (const std::uint32_t e : graph.in_edges(n)) {
        const std::uint32_t u = graph.from[e];
        Ticks arrival = r.end[u];
        for (const OutputTransfer& t : r.transfers)
          if (t.node == u && t.to == placement[n] && placement[u] != placement[n] && graph.bytes[e] > 0)
            arrival = std::max(arrival, t.end);
        ready = std::max(ready, arrival);
      }
      CHECK(r.start[n] >= ready);
      for (std::uint32_t m = 0; m < n; ++m)
        if (placement[m] == placement[n]) CHECK((r.end[m] <= r.start[n] || r.end[n] <= r.start[m]));
      if (r.start[n] == ready) continue;
      // It waited: its device was busy when it was ready and until it began.
      Ticks busy = 0;
      for (std::uint32_t m = 0; m < graph.size(); ++m)
        if (m != n && placement[m] == placement[n])
          busy += std::max<Ticks>(0, std::min(r.end[m], r.start[n]) - std::max(r.start[m], ready));
      CHECK(busy == r.start[n] - ready);
    }
    if (options.links == Links::copy_engines)
      for (const OutputTransfer& a : r.transfers)
        for (const OutputTransfer& b : r.transfers)
          if (&a != &b && (placement[a.node] == placement[b.node] || a.to == b.to))
            CHECK((a.end <= b.begin || b.end <= a.begin));
    const std::vector<MemoryPeak> peaks = memory_peaks(residences(graph, placement, r), machine.devices);
    for (std::int16_t d = 0; d < machine.devices; ++d) {
      double most = 0;
      for (Ticks t = 0; t <= r.makespan; t += kUnit) most = std::max(most, memory_at(graph, placement, r, d, t));
      CHECK(peaks[static_cast<std::size_t>(d)].bytes == most);
    }
  }
}

TEST_CASE("what ParDNN says fits never exceeds the memory in a replay; what it says does not fit is not judged") {
  std::mt19937 random(5);
  int fitted = 0, moved = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const PlacementGraph graph = random_operators(random, 20 + random() % 60, 20, true);
    PlacementMachine machine = unit_machine(2 + static_cast<int>(random() % 3));
    const ParDnnOptions options{.literal = trial % 4 == 0,
                                .replay = {.links = trial % 2 == 0 ? Links::apart : Links::copy_engines},
                                .search_nodes = 1e4};
    const double peak = pardnn(graph, machine, options).back().peak_bytes;
    machine.memory = std::floor(peak * (0.7 + 0.3 * static_cast<double>(random() % 100) / 100));
    const PlacementStage result = pardnn(graph, machine, options).back();
    for (std::uint32_t n = 0; n < graph.size(); ++n) {
      REQUIRE(result.placement[n] >= 0);
      REQUIRE(result.placement[n] < machine.devices);
    }
    if (!result.fits) continue;
    ++fitted;
    if (result.moved_nodes > 0) ++moved;
    const ReplayResult r = replay(graph, machine, result.placement, options.replay);
    for (std::int16_t d = 0; d < machine.devices; ++d)
      for (Ticks t = 0; t <= r.makespan; t += kUnit)
        CHECK(memory_at(graph, result.placement, r, d, t) <= machine.memory);
  }
  CHECK(fitted >= 120);
  CHECK(moved >= 50);
}

TEST_CASE("ParDNN's makespan is within a tenth of the optimum on average") {
  std::mt19937 random(6);
  double sum = 0;
  constexpr int kGraphs = 300;
  for (int trial = 0; trial < kGraphs; ++trial) {
    const PlacementGraph graph = random_operators(random, 2 + random() % 9, 4);
    const PlacementMachine machine = unit_machine(2);
    Ticks best = kMostTicks;
    // The first node's device does not matter.
    for (unsigned mask = 0; mask < 1U << (graph.size() - 1); ++mask) {
      Placement placement(graph.size(), 0);
      for (std::size_t n = 1; n < graph.size(); ++n) placement[n] = static_cast<std::int16_t>(mask >> (n - 1) & 1);
      best = std::min(best, replay(graph, machine, placement).makespan);
    }
    const Ticks ours = pardnn(graph, machine).back().makespan;
    CHECK(ours >= best);
    sum += static_cast<double>(ours) / static_cast<double>(best);
  }
  INFO("mean of makespan over optimum: " << sum / kGraphs);
  CHECK(sum / kGraphs <= 1.10);
}

TEST_CASE("a ledger holds at least what a replay has in memory, and moves there and back change nothing") {
  std::mt19937 random(8);
  for (int trial = 0; trial < 50; ++trial) {
    const PlacementGraph graph = random_operators(random, 20 + random() % 60, 20, true);
    const PlacementMachine machine = unit_machine(3);
    Placement placement(graph.size());
    for (std::int16_t& device : placement) device = static_cast<std::int16_t>(random() % 3);
    const Placement before = placement;
    const ReplayResult result = replay(graph, machine, placement);
    const std::vector<MemoryPeak> peaks = memory_peaks(residences(graph, placement, result), 3);
    MemoryLedger ledger(graph, 3, result, placement);
    std::vector<double> most;
    for (std::size_t d = 0; d < 3; ++d) {
      most.push_back(ledger.most(d));
      CHECK(most.back() >= peaks[d].bytes);
      CHECK(ledger.at(d, ledger.fullest_moment(d)) == most.back());
    }
    const std::vector<std::uint32_t> some{static_cast<std::uint32_t>(random() % graph.size())};
    const std::int16_t home = placement[some.front()];
    ledger.move(some, static_cast<std::int16_t>((home + 1) % 3));
    ledger.move(some, home);
    CHECK(placement == before);
    for (std::size_t d = 0; d < 3; ++d) CHECK(ledger.most(d) == most[d]);  // whole bytes: sums are exact
  }
}

}  // namespace epocast::placement_property_test
