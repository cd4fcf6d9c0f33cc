// No execution of a cyclic task graph can be faster per iteration than its slowest cycle: the largest, over all cycles,
// of the durations on it divided by the lags on it (Baccelli, Cohen, Olsder, Quadrat, "Synchronization and linearity",
// 1992, theorem 2.28). Small graphs have few enough simple cycles to look at every one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sim/cycle_bound.hpp"
#include "sim/cycle_ratio.hpp"

namespace epocast::cycle_bound_test {

namespace {

struct Arc {
  std::size_t from, to;
  int lag;
};

/// The largest duration / lag of all simple cycles: depth-first from each vertex through larger ones only, so that
/// every cycle is met once, at its smallest vertex.
class Enumeration {
 public:
  Enumeration(std::vector<double> duration, std::vector<Arc> arcs)
      : duration_(std::move(duration)), arcs_(std::move(arcs)), on_path_(duration_.size(), false) {
    for (std::size_t v = 0; v < duration_.size(); ++v) arcs_.push_back({v, v, 1});  // waits for its own last firing
    for (root_ = 0; root_ < duration_.size(); ++root_) visit(root_, 0, 0);
  }
  double slowest() const { return slowest_; }

 private:
  void visit(std::size_t v, double seconds, int lag) {
    on_path_[v] = true;
    seconds += duration_[v];
    for (const Arc& arc : arcs_) {
      if (arc.from != v) continue;
      if (arc.to == root_)
        slowest_ = std::max(slowest_, seconds / (lag + arc.lag));
      else if (arc.to > root_ && !on_path_[arc.to])
        visit(arc.to, seconds, lag + arc.lag);
    }
    on_path_[v] = false;
  }
  std::vector<double> duration_;
  std::vector<Arc> arcs_;
  std::vector<bool> on_path_;
  std::size_t root_ = 0;
  double slowest_ = 0;
};

/// Tasks on first-come queues of their own on one device.
CyclicTaskGraph graph_of(const std::vector<double>& duration, const std::vector<Arc>& arcs) {
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0});
  for (const double seconds : duration)
    graph.compute(graph.add_queue("queue", device, QueueRole::compute, Discipline::fifo), Seconds(seconds),
                  {"task", ""});
  for (const Arc& arc : arcs) graph.after(TaskId(arc.from), TaskId(arc.to), arc.lag);
  return graph;
}

CycleBound bound_of(const CyclicTaskGraph& graph, const std::vector<ServiceCount>& counts = {}) {
  const CompiledGraph compiled = compile(graph, false);
  return maximum_cycle_ratio(
      compiled, [&](Instance i) { return std::get<Compute>(compiled.task(i.task).work).duration.longest().value; },
      counts);
}

}  // namespace

TEST_CASE("the bound is the slowest of all simple cycles", "[cycle_bound]") {
  std::mt19937_64 random(2024);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t tasks = 1 + below(7);
    std::vector<double> duration;
    for (std::size_t t = 0; t < tasks; ++t)
      duration.push_back(below(5) == 0 ? 0 : std::uniform_real_distribution(0.0, 10.0)(random));
    std::vector<Arc> arcs;
    for (std::size_t k = 0; k < below(3 * tasks + 1); ++k) {
      const std::size_t from = below(tasks), to = below(tasks);
      // Lag 0 only forwards, so that no cycle is without lag.
      arcs.push_back({from, to, static_cast<int>(from < to ? below(3) : 1 + below(2))});
    }
    INFO("trial " << trial << ", " << tasks << " tasks, " << arcs.size() << " edges");
    const CycleBound bound = bound_of(graph_of(duration, arcs));
    const double expected = Enumeration(duration, arcs).slowest();
    CHECK(bound.seconds == Approx(expected).epsilon(1e-9).margin(1e-12));

    // The cycle that is named has that ratio, and exists.
    double seconds = 0;
    int lag = 0;
    for (std::size_t k = 0; k < bound.tasks.size(); ++k) {
      const std::size_t from = bound.tasks[k], to = bound.tasks[(k + 1) % bound.tasks.size()];
      CHECK(bound.durations[k] == Approx(duration[from]).epsilon(1e-12));
      const bool own = from == to && bound.lags[k] == 1;
      CHECK((own || std::any_of(arcs.begin(), arcs.end(),
                                [&](const Arc& a) { return a.from == from && a.to == to && a.lag == bound.lags[k]; })));
      seconds += bound.durations[k];
      lag += bound.lags[k];
    }
    if (lag > 0) CHECK(seconds / lag == Approx(expected).epsilon(1e-9));
  }
}

TEST_CASE("no cycle of a graph with chains, shortcuts and dead ends is slower than the bound", "[cycle_bound]") {
  // Vertices on chains, which one arc leaves or reaches, and arcs past them. A ratio r is the largest if some cycle has
  // it and arcs of length weight - r lag leave no cycle of positive length: then the longest ways settle.
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t vertices = 2 + below(60);
    std::vector<RatioArc> arcs;
    const auto add = [&](std::size_t from, std::size_t to) {
      arcs.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to),
                      std::uniform_real_distribution(0.0, 4.0)(random),
                      static_cast<double>(from < to ? below(2) : 1 + below(2))});
    };
    for (std::size_t v = 0; v < vertices; ++v) add(v, below(8) == 0 ? below(vertices) : (v + 1) % vertices);
    for (std::size_t k = 0; k < below(vertices); ++k) {
      const std::size_t from = below(vertices);
      add(from, std::min(from + 1 + below(3), vertices - 1));
    }
    INFO("trial " << trial << ", " << vertices << " vertices, " << arcs.size() << " arcs");
    const CriticalCycle cycle = critical_cycle(vertices, arcs);
    std::vector<RatioArc> renamed = arcs;  // so that arcs without lag lead anywhere
    std::vector<std::uint32_t> name(vertices);
    std::iota(name.begin(), name.end(), 0U);
    std::shuffle(name.begin(), name.end(), random);
    for (RatioArc& arc : renamed) arc = {name[arc.from], name[arc.to], arc.weight, arc.lag};
    CHECK(critical_cycle(vertices, renamed).ratio == Approx(cycle.ratio).epsilon(1e-12));
    REQUIRE(!cycle.arcs.empty());
    double weight = 0, lag = 0;
    for (std::size_t k = 0; k < cycle.arcs.size(); ++k) {
      const RatioArc& arc = arcs[cycle.arcs[k]];
      CHECK(arc.to == arcs[cycle.arcs[(k + 1) % cycle.arcs.size()]].from);
      weight += arc.weight;
      lag += arc.lag;
    }
    CHECK(weight / lag == Approx(cycle.ratio).epsilon(1e-12));
    std::vector<double> way(vertices, 0);
    bool longer = true;
    for (std::size_t round = 0; longer && round <= vertices; ++round) {
      longer = false;
      for (const RatioArc& arc : arcs)
        if (const double length = way[arc.from] + arc.weight - (cycle.ratio + 1e-9) * arc.lag;
            length > way[arc.to] + 1e-12) {
          way[arc.to] = length;
          longer = true;
        }
    }
    CHECK(!longer);
  }
}

TEST_CASE("a cycle may run through several ranks", "[cycle_bound]") {
  // work (2 ranks, 3 s) -> join (1 s) -> work of the next iteration: 4 s per iteration. A chain of lag 2 that takes 10
  // s, b -> c -> b, makes 5 s and wins.
  CyclicTaskGraph graph;
  const GroupId pair = graph.add_group("pair", {0, 1}), one = graph.add_group("one", {2});
  const QueueId both = graph.add_queue("both", pair, QueueRole::compute, Discipline::program_order);
  const QueueId single = graph.add_queue("single", one, QueueRole::compute, Discipline::program_order);
  const QueueId b_queue = graph.add_queue("b", one, QueueRole::compute, Discipline::program_order);
  const QueueId c_queue = graph.add_queue("c", one, QueueRole::compute, Discipline::program_order);
  const TaskId work = graph.compute(both, Seconds(3), {"work", ""}),
               join = graph.compute(single, Seconds(1), {"join", ""});
  graph.after(work, join);
  graph.after(join, work, 1);
  CHECK(bound_of(graph).seconds == Approx(4).epsilon(1e-12));

  const TaskId b = graph.compute(b_queue, Seconds(4.5), {"b", ""}), c = graph.compute(c_queue, Seconds(5.5), {"c", ""});
  graph.after(b, c);
  graph.after(c, b, 2);
  graph.after(join, b);
  // b and c themselves take 4.5 and 5.5 s per iteration: c alone is slower than the cycle's (4.5 + 5.5) / 2 = 5 s.
  const CycleBound bound = bound_of(graph);
  CHECK(bound.seconds == Approx(5.5).epsilon(1e-12));
  CHECK(bound.tasks == std::vector<std::uint32_t>{static_cast<std::uint32_t>(c)});
}

TEST_CASE("program order is a cycle", "[cycle_bound]") {
  // Three tasks on one stream: the sum of their times, one iteration of lag around.
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0});
  const QueueId queue = graph.add_queue("queue", device, QueueRole::compute, Discipline::program_order);
  for (const double seconds : {1.0, 2.0, 4.0}) graph.compute(queue, Seconds(seconds), {"task", ""});
  const CycleBound bound = bound_of(graph);
  CHECK(bound.seconds == Approx(7).epsilon(1e-12));
  CHECK(bound.tasks.size() == 3);
}

TEST_CASE("a long cycle is found whole", "[cycle_bound]") {
  // 1 + 2 + .. + 3000 s on one stream, beside a queue whose single task, of 1e6 s, is slower than any of them alone.
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0});
  const QueueId other = graph.add_queue("other", device, QueueRole::communication, Discipline::program_order);
  const QueueId queue = graph.add_queue("queue", device, QueueRole::compute, Discipline::program_order);
  graph.compute(other, Seconds(1e6), {"other", ""});
  for (int k = 1; k <= 3000; ++k) graph.compute(queue, Seconds(k), {"task", ""});
  const CycleBound bound = bound_of(graph);
  CHECK(bound.seconds == Approx(3000 * 3001 / 2).epsilon(1e-12));
  CHECK(bound.tasks.size() == 3000);
}

TEST_CASE("long ways that part and meet again are told apart", "[cycle_bound]") {
  // 500 times two tasks side by side, of which the slower one counts, in both orders; back to the front with lag 1. In
  // each pair 2 s and 3 s, or 3 s and 2 s: 500 x 3 s.
  std::vector<double> duration;
  std::vector<Arc> arcs;
  for (std::size_t k = 0; k < 500; ++k) {
    duration.insert(duration.end(), {k % 2 == 0 ? 2.0 : 3.0, k % 2 == 0 ? 3.0 : 2.0});
    for (const std::size_t from : {2 * k, 2 * k + 1})
      for (const std::size_t to : {2 * k + 2, 2 * k + 3}) arcs.push_back({from, to % 1000, to < 1000 ? 0 : 1});
  }
  const CycleBound bound = bound_of(graph_of(duration, arcs));
  CHECK(bound.seconds == Approx(1500).epsilon(1e-12));
  CHECK(std::all_of(bound.durations.begin(), bound.durations.end(), [](double d) { return d == 3; }));
}

TEST_CASE("of arcs between the same vertices, or of a vertex to itself, the better counts", "[cycle_bound]") {
  // From 0 to 1 with 1 per no lag or 6 per 3, and back with 1 per 1: 2 or 7/4. Beside it 2 waits for itself, and what
  // follows 3 leads nowhere else.
  const std::vector<RatioArc> arcs{{0, 1, 6, 3}, {0, 1, 1, 0}, {1, 0, 1, 1}, {2, 0, 1, 1},
                                   {2, 2, 3, 2}, {3, 4, 9, 0}, {4, 4, 1, 1}};
  const CriticalCycle cycle = critical_cycle(5, arcs);
  CHECK(cycle.ratio == Approx(2).epsilon(1e-15));
  CHECK(cycle.arcs == std::vector<std::size_t>{1, 2});
  std::vector<RatioArc> other = arcs;
  other[4].weight = 5;
  CHECK(critical_cycle(5, other).ratio == Approx(2.5).epsilon(1e-15));
  CHECK(critical_cycle(5, other).arcs == std::vector<std::size_t>{4});
  other[0].weight = 11;
  CHECK(critical_cycle(5, other).ratio == Approx(3).epsilon(1e-15));
  CHECK(critical_cycle(5, other).arcs == std::vector<std::size_t>{0, 2});
}

TEST_CASE("nothing to do has no bound", "[cycle_bound]") {
  CHECK(bound_of(graph_of({0, 0}, {{0, 1, 0}, {1, 0, 1}})).seconds == 0);
}

TEST_CASE("the order in which a queue serves its tasks is part of the cycle", "[cycle_bound]") {
  // Two independent loops of 3 s and 2 s share a first-come queue. Without the queue's order the slower one bounds, 3
  // s; with it both are served in turn, 5 s.
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0});
  const QueueId queue = graph.add_queue("queue", device, QueueRole::compute, Discipline::fifo);
  graph.compute(queue, Seconds(3), {"a", ""});
  graph.compute(queue, Seconds(2), {"b", ""});
  CHECK(bound_of(graph).seconds == Approx(3).epsilon(1e-12));
  // Both have begun 7 times, b after a.
  const std::vector<ServiceCount> counts{{0, 0, 0, 7, 13}, {1, 0, 0, 7, 14}};
  const CycleBound bound = bound_of(graph, counts);
  CHECK(bound.seconds == Approx(5).epsilon(1e-12));
  CHECK(bound.tasks.size() == 2);
}

TEST_CASE("service order holds across iterations", "[cycle_bound]") {
  // Ranks 0 and 1 each compute for 10 s and then have 4 s of service at a server, one after the other, before they
  // compute again: rank 0 is served from 10 to 14, rank 1 from 14 to 18. Period 14 s, by rank 0's own loop; rank 1
  // began its computation 4 s later. The server's order closes a cycle of 8 s only.
  CyclicTaskGraph graph;
  const GroupId pair = graph.add_group("pair", {0, 1}), server = graph.add_group("server", {2});
  const QueueId own = graph.add_queue("own", pair, QueueRole::compute, Discipline::program_order);
  const QueueId shared = graph.add_queue("shared", server, QueueRole::server, Discipline::fifo);
  const TaskId compute = graph.compute(own, Seconds(10), {"compute", ""});
  const TaskId serve = graph.compute_for(pair, shared, Seconds(4), {"serve", ""});
  graph.after(compute, serve);
  graph.after(serve, compute, 1);
  // At some moment both are computing their fourth iteration and have been served three times, rank 1 after rank 0.
  const std::vector<ServiceCount> counts{{0, 0, -1, 4, 20}, {0, 1, -1, 4, 22}, {1, 0, 0, 3, 19}, {1, 1, 0, 3, 21}};
  CHECK(bound_of(graph, counts).seconds == Approx(14).epsilon(1e-12));
  // With another 6 s of service the server works 2 x (4 + 6) s = 20 s per iteration, in the order serve 0, serve 1,
  // check 0, check 1, while a rank's own loop still takes 14 s.
  CyclicTaskGraph slow = graph;
  slow.after(compute, slow.compute_for(pair, shared, Seconds(6), {"check", ""}));
  const std::vector<ServiceCount> busy{{0, 0, -1, 4, 20}, {0, 1, -1, 4, 22}, {1, 0, 0, 3, 19},
                                       {1, 1, 0, 3, 21},  {2, 0, 0, 3, 23},  {2, 1, 0, 3, 24}};
  CHECK(bound_of(slow, busy).seconds == Approx(20).epsilon(1e-12));
  // The order may reach across iterations: rank 1 has been served once less, and its turn comes next.
  const std::vector<ServiceCount> apart{{0, 0, -1, 4, 20}, {0, 1, -1, 3, 18}, {1, 0, 0, 3, 19}, {1, 1, 0, 2, 17}};
  CHECK(bound_of(graph, apart).seconds == Approx(14).epsilon(1e-12));
}

}  // namespace epocast::cycle_bound_test
