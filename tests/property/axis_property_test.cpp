// A task along an axis is shorthand for one task per team, each over a group of its own. So, on random grids of ranks,
// a graph that uses axes and the graph that spells every rank and team out take the same time, to rounding: rank by
// rank, task by task, byte by byte.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/simulate.hpp"

namespace epocast::axis_property_test {

namespace {

constexpr int kGrids = 40;
constexpr std::int64_t kIterations = 40;

/// The same random training loop, written with axes and spelt out.
class TwoWays {
 public:
  TwoWays(std::uint64_t seed, const std::vector<std::uint32_t>& grid) : random_(seed) {
    for (const std::uint32_t extent : grid) ranks_ *= extent;
    std::uint32_t stride = ranks_;
    for (const std::uint32_t extent : grid) axes_.push_back({stride /= extent, extent});
    if (grid.size() > 1) axes_.push_back({1, ranks_});
    std::vector<DeviceId> all;
    for (DeviceId d = 0; d < static_cast<DeviceId>(ranks_); ++d) all.push_back(d);
    std::shuffle(all.begin(), all.end(), random_);
    group_ = short_.add_group("grid", all);
    for (std::uint32_t r = 0; r < ranks_; ++r) own_.push_back(spelt_.add_group("rank", {all[r]}));
    for (const Axis& axis : axes_)
      for (std::uint32_t team = 0; team < axis.teams(ranks_); ++team) {
        std::vector<DeviceId> devices;
        axis.for_each_rank(team, [&](std::uint32_t r) { devices.push_back(all[r]); });
        teams_[{axis.stride, axis.extent}].push_back(spelt_.add_group("team", devices));
      }
    add_queues();
    const int tasks = 4 + below(6);
    for (int t = 0; t < tasks; ++t) add_task("task " + std::to_string(t));
    add_edges();
  }

  const CyclicTaskGraph& with_axes() const { return short_; }
  const CyclicTaskGraph& spelt_out() const { return spelt_; }
  /// The task that spells out an instance.
  TaskId spelt(std::uint32_t task, std::uint32_t team) const { return parts_[task][team]; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }

  void add_queues() {
    for (int q = 0; q < 2; ++q) {
      const auto discipline = q == 0 ? Discipline::fifo : Discipline::priority;
      std::vector<double> slowdown;
      for (std::uint32_t r = 0; r < ranks_; ++r) slowdown.push_back(between(1, 1.2));
      queues_.push_back(short_.add_queue("work", group_, QueueRole::compute, discipline));
      short_.set_slowdown(queues_.back(), slowdown);
      auto& spelt = spelt_queues_.emplace_back();
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        spelt.push_back(spelt_.add_queue("work", own_[r], QueueRole::compute, discipline));
        spelt_.set_slowdown(spelt.back(), {slowdown[r]});
      }
    }
  }

  void add_task(const std::string& name) {
    auto& parts = parts_.emplace_back();
    const Axis axis = axes_[static_cast<std::size_t>(below(static_cast<int>(axes_.size())))];
    const auto& teams = teams_.at({axis.stride, axis.extent});
    const int kind = below(4);
    if (kind < 2) {
      const auto q = static_cast<std::size_t>(kind);
      const Seconds duration(1e-3 * between(1, 9));
      short_.set_priority(short_.compute(queues_[q], duration, {"compute", name}), below(3));
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        parts.push_back(spelt_.compute(spelt_queues_[q][r], duration, {"compute", name}));
        spelt_.set_priority(parts.back(), short_.tasks().back().priority);
      }
    } else if (kind == 2 && axis.extent > 1) {
      const bool messages = below(2) == 0;
      Collective sum{.algorithm = messages ? CollectiveAlgorithm::double_binary_tree : CollectiveAlgorithm::ring,
                     .level = below(2) == 0 ? CollectiveLevel::message : CollectiveLevel::flow,
                     .group = group_,
                     .bytes = Bytes(1e6 * between(1, 7)),
                     .gamma = below(2) * 1e-10};
      short_.collective_along(axis, QueueId::none, sum, {"all-reduce", name});
      for (const GroupId team : teams) {
        sum.group = team;
        parts.push_back(spelt_.collective(QueueId::none, sum, {"all-reduce", name}));
      }
    } else {
      short_.barrier_along(axis, group_, {"barrier", name});
      for (std::uint32_t team = 0; team < teams.size(); ++team)  // spelt out, a task of one rank joins and fans out
        parts.push_back(spelt_.compute_for(own_[axis.first_rank(team)], QueueId::none, Seconds(0), {"barrier", name}));
    }
  }

  void add_edges() {
    const int tasks = static_cast<int>(short_.tasks().size());
    const auto add = [&](int before, int after, int lag) {
      short_.after(TaskId(before), TaskId(after), lag);
      const Axis from = short_.tasks()[static_cast<std::size_t>(before)].axis,
                 to = short_.tasks()[static_cast<std::size_t>(after)].axis;
      for (std::uint32_t r = 0; r < ranks_; ++r)
        spelt_.after(parts_[static_cast<std::size_t>(before)][from.team_of(r)],
                     parts_[static_cast<std::size_t>(after)][to.team_of(r)], lag);
    };
    for (int k = 0; k < 2 * tasks; ++k) {
      const int a = below(tasks), b = below(tasks);
      if (a != b) add(a, b, a < b ? below(2) : 1 + below(2));
    }
    for (int t = 0; t + 1 < tasks; ++t) {
      add(t, tasks - 1, 0);
      add(tasks - 1, t, 1 + below(2));
    }
  }

  std::mt19937_64 random_;
  std::uint32_t ranks_ = 1;
  std::vector<Axis> axes_;
  CyclicTaskGraph short_, spelt_;
  GroupId group_{};
  std::vector<GroupId> own_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<GroupId>> teams_;
  std::vector<QueueId> queues_;
  std::vector<std::vector<QueueId>> spelt_queues_;
  std::vector<std::vector<TaskId>> parts_;
};

std::vector<std::uint32_t> random_grid(std::mt19937_64& random) {
  const std::vector<std::vector<std::uint32_t>> grids{{2, 3}, {4, 2}, {2, 2, 2}, {3, 3}, {2, 3, 2}, {6}, {3, 4}};
  return grids[random() % grids.size()];
}

}  // namespace

TEST_CASE("an axis numbers ranks by team and place", "[task graph][axis]") {
  // A grid of 2 x 3 x 4 ranks, the last axis varying fastest: rank = (a 3 + b) 4 + c.
  const Axis a{12, 2}, b{4, 3}, c{1, 4};
  CHECK(b.team_of((1 * 3 + 2) * 4 + 3) == 1 * 4 + 3);
  CHECK(b.place_of((1 * 3 + 2) * 4 + 3) == 2);
  CHECK(a.team_of((1 * 3 + 2) * 4 + 3) == 2 * 4 + 3);
  CHECK(c.team_of((1 * 3 + 2) * 4 + 3) == 1 * 3 + 2);
  for (const Axis axis : {a, b, c, Axis{1, 24}, Axis{1, 1}, Axis{4, 6}}) {
    REQUIRE(axis.divides(24));
    std::vector<int> seen(24, 0);
    for (std::uint32_t team = 0; team < axis.teams(24); ++team) {
      std::uint32_t place = 0;
      axis.for_each_rank(team, [&](std::uint32_t rank) {
        ++seen.at(rank);
        CHECK(axis.team_of(rank) == team);
        CHECK(axis.place_of(rank) == place);
        CHECK(axis.rank_at(team, place++) == rank);
      });
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == 24);
  }
  CHECK_FALSE(Axis{4, 4}.divides(24));
  CHECK_FALSE(Axis{0, 2}.divides(24));
}

TEST_CASE("a task along an axis is one task per team", "[task graph][axis][property]") {
  const testing::Star star(12, 1e9, 100e-6);
  std::mt19937_64 random(7);
  std::vector<TwoWays> loops;
  for (std::uint64_t g = 0; g < kGrids; ++g) loops.emplace_back(100 + g, random_grid(random));
  const ExecutionOptions options{
      .iterations = kIterations, .exact = true, .fold = false, .record_waiting = true, .record_timeline = true};
  const Cluster& platform = star.cluster();
  const auto packed = testing::on_engines(platform, 2 * kGrids, [&](int job, SimEngine& engine) {
    const TwoWays& loop = loops[static_cast<std::size_t>(job / 2)];
    return testing::execute_packed(star.cluster(), engine,
                                   {{job % 2 == 0 ? loop.with_axes() : loop.spelt_out(), options}});
  });
  for (std::size_t g = 0; g < kGrids; ++g) {
    INFO("grid " << g);
    const ExecutionResult axes = testing::unpack(packed[2 * g]).front();
    const ExecutionResult spelt = testing::unpack(packed[2 * g + 1]).front();
    CHECK(axes.total == Approx(spelt.total).epsilon(1e-9));
    CHECK(axes.metrics.bytes == Approx(spelt.metrics.bytes).epsilon(1e-9));
    REQUIRE(axes.bound);
    REQUIRE(spelt.bound);
    CHECK(axes.bound->seconds == Approx(spelt.bound->seconds).epsilon(1e-9));
    for (std::size_t d = 0; d < axes.totals.activity.size(); ++d) {
      CHECK(axes.totals.activity[d].compute() == Approx(spelt.totals.activity[d].compute()).epsilon(1e-9));
      CHECK(axes.totals.activity[d].communication() == Approx(spelt.totals.activity[d].communication()).epsilon(1e-9));
      CHECK(axes.totals.sent[d] == Approx(spelt.totals.sent[d]).epsilon(1e-9));
    }
    std::map<std::pair<std::uint32_t, std::int64_t>, const Interval*> when;
    for (const Interval& i : spelt.timeline.intervals) when[{i.task, i.iteration}] = &i;
    REQUIRE(axes.timeline.intervals.size() == spelt.timeline.intervals.size());
    double worst = 0;
    for (const Interval& i : axes.timeline.intervals) {
      const auto task = static_cast<std::uint32_t>(loops[g].spelt(i.task, i.rank));
      const Interval& other = *when.at({task, i.iteration});
      worst = std::max({worst, std::abs(i.start - other.start), std::abs(i.end - other.end)});
    }
    CHECK(worst < 1e-9 * axes.total);
  }
}

}  // namespace epocast::axis_property_test
