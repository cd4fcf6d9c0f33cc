#include "strategies/placement/overflow.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "strategies/placement/memory_ledger.hpp"
#include "strategies/placement/overflow_rounds.hpp"

namespace epocast {
namespace {

constexpr std::size_t kMostReaders = 8;  // that leave together
constexpr std::size_t kMostOfGroup = 64;
constexpr std::size_t kMostTargets = 4;     // that a set tries
constexpr std::size_t kMostFailures = 200;  // sets in a row that nobody can take, until a moment is given up
constexpr int kMostStuck = 2;
constexpr double kMargin = 0.99;  // of the limit, down to which a moment is relieved: its neighbours are alike
constexpr std::size_t kMostMomentsRelieved = 400;  // in a round: each costs O(V + E)
constexpr double kMostOfAll = 1.02;                // of all memory, beyond which no moves at about these times can help

/// One round: times of a replay stay as they are, nodes move.
class OverflowRound {
 public:
  OverflowRound(const PlacementGraph& graph, const PlacementMachine& machine, const OverflowState& state, double limit,
                Placement& placement)
      : graph_(graph),
        transfer_(state.transfer),
        members_(state.members),
        limit_(limit),
        placement_(placement),
        devices_(static_cast<std::size_t>(machine.devices)),
        ledger_(graph, machine.devices, state.times, placement),
        moved_(graph.size(), 0),
        mark_(graph.size(), 0) {}

  /// Gives the number of sets of nodes that moved.
  std::size_t run() {
    std::size_t moves = 0;
    std::vector<char> hopeless(devices_, 0);
    for (std::size_t relieved = 0; relieved < kMostMomentsRelieved; ++relieved) {
      std::size_t worst = devices_;
      for (std::size_t d = 0; d < devices_; ++d)
        if (!hopeless[d] && ledger_.most(d) > limit_ && (worst == devices_ || ledger_.most(d) > ledger_.most(worst)))
          worst = d;
      if (worst == devices_) return moves;
      const std::size_t moment = ledger_.fullest_moment(worst);
      moves += relieve(worst, moment);
      if (ledger_.at(worst, moment) > limit_) hopeless[worst] = 1;
    }
    return moves;
  }

 private:
  struct Candidate {
    double cost, bytes;
    std::uint32_t holder;
  };

  /// The nodes that must leave device d so that what it holds of node n at moment t need not be there; empty if that
  /// cannot be said.
  void leavers(std::uint32_t n, std::size_t d, std::size_t t, std::vector<std::uint32_t>& out) {
    out.clear();
    const bool is_home = static_cast<std::size_t>(placement_[n]) == d;
    if (graph_.lifetime[n] == Lifetime::residual && is_home) {
      if (graph_.group[n] < 0) {
        out.push_back(n);
        return;
      }
      for (const std::uint32_t m : members_[static_cast<std::size_t>(graph_.group[n])]) {
        out.push_back(m);
        for (std::uint32_t e = graph_.out_begin[m]; e < graph_.out_begin[m + 1]; ++e)
          if (graph_.bytes[e] >= kSmall * graph_.memory[n]) add_free(graph_.to[e], d, out);
        for (const std::uint32_t e : graph_.in_edges(m))
          if (graph_.bytes[e] >= kSmall * graph_.memory[n]) add_free(graph_.from[e], d, out);
        if (out.size() > kMostOfGroup) return out.clear();
      }
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
      return;
    }
    for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph_.to[e];
      if (graph_.bytes[e] <= 0 || static_cast<std::size_t>(placement_[v]) != d || ledger_.end(v) < t) continue;
      if (graph_.group[v] >= 0 || moved_[v] || out.size() >= kMostReaders) return out.clear();
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    }
    if (is_home && (out.empty() || ledger_.start(n) >= t)) {
      if (graph_.group[n] >= 0 || moved_[n]) return out.clear();
      out.push_back(n);
    }
  }

  void add_free(std::uint32_t n, std::size_t d, std::vector<std::uint32_t>& out) const {
    if (graph_.group[n] < 0 && static_cast<std::size_t>(placement_[n]) == d && !moved_[n]) out.push_back(n);
  }

  /// Eq. 4.5 of a set: its work, and transfers with neighbours that stay on its device.
  double move_cost(const std::vector<std::uint32_t>& set, std::size_t d) {
    ++stamp_;
    for (const std::uint32_t n : set) mark_[n] = stamp_;
    Ticks cost = 0;
    for (const std::uint32_t n : set) {
      cost += graph_.time[n];
      for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e)
        if (mark_[graph_.to[e]] != stamp_ && static_cast<std::size_t>(placement_[graph_.to[e]]) == d)
          cost += transfer_[e];
      for (const std::uint32_t e : graph_.in_edges(n))
        if (mark_[graph_.from[e]] != stamp_ && static_cast<std::size_t>(placement_[graph_.from[e]]) == d)
          cost += transfer_[e];
    }
    return static_cast<double>(cost);
  }

  /// What device d holds at moment t: node and bytes.
  void holders(std::size_t d, std::size_t t, std::vector<std::pair<std::uint32_t, double>>& out) {
    out.clear();
    for (std::uint32_t n = 0; n < graph_.size(); ++n) {
      const bool is_home = static_cast<std::size_t>(placement_[n]) == d;
      const bool is_residual = graph_.lifetime[n] == Lifetime::residual;
      if (is_home && (graph_.memory[n] <= 0 || (!is_residual && ledger_.start(n) > t))) continue;
      if (!is_home && ledger_.end(n) > t) continue;
      if (is_home && is_residual) {
        out.emplace_back(n, graph_.memory[n]);
        continue;
      }
      double bytes = is_home && ledger_.end(n) >= t ? graph_.memory[n] : 0;
      for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
        if (graph_.bytes[e] <= 0 || static_cast<std::size_t>(placement_[graph_.to[e]]) != d ||
            ledger_.end(graph_.to[e]) < t)
          continue;
        bytes = is_home ? graph_.memory[n] : std::max(bytes, graph_.bytes[e]);
      }
      if (bytes > 0) out.emplace_back(n, bytes);
    }
  }

  std::size_t relieve(std::size_t d, std::size_t t) {
    holders(d, t, holders_);
    std::vector<Candidate> all;
    for (const auto& [n, bytes] : holders_) {
      leavers(n, d, t, set_);
      if (set_.empty()) continue;
      all.push_back({move_cost(set_, d), bytes, n});
    }
    const auto by_ratio = [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.cost * b.bytes, a.holder) > std::tuple(b.cost * a.bytes, b.holder);
    };
    const auto by_cost = [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.cost, a.holder) > std::tuple(b.cost, b.holder);
    };
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(by_ratio)> cheap(by_ratio, all);
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(by_cost)> enough(by_cost);
    const double overflow = ledger_.at(d, t) - limit_;
    for (const Candidate& c : all)
      if (c.bytes >= overflow) enough.push(c);
    std::size_t moves = 0, failures = 0;
    while (ledger_.at(d, t) > kMargin * limit_ && !(cheap.empty() && enough.empty())) {
      Candidate next{};
      if (enough.empty() || (!cheap.empty() && cheap.top().cost <= enough.top().cost)) {
        next = cheap.top();
        cheap.pop();
      } else {
        next = enough.top();
        enough.pop();
      }
      leavers(next.holder, d, t, set_);  // some may have left already
      if (set_.empty()) continue;
      if (try_to_move(d, t, next)) {
        ++moves;
        failures = 0;
      } else if (++failures == kMostFailures) {
        break;
      }
    }
    return moves;
  }

  /// Moves set_ from d to another device, if one can take it and that helps at moment t, when the
  /// output that it reads or makes is there: where that lies already it needs no more room.
  bool try_to_move(std::size_t d, std::size_t t, const Candidate& of) {
    std::vector<std::pair<double, std::size_t>> order;  // most traffic first, then most room
    std::vector<double> traffic(devices_, 0);
    for (const std::uint32_t n : set_) {
      for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e)
        traffic[static_cast<std::size_t>(placement_[graph_.to[e]])] += graph_.bytes[e];
      for (const std::uint32_t e : graph_.in_edges(n))
        traffic[static_cast<std::size_t>(placement_[graph_.from[e]])] += graph_.bytes[e];
    }
    for (std::size_t to = 0; to < devices_; ++to)
      if (to != d &&
          ledger_.at(to, t) + (static_cast<std::size_t>(placement_[of.holder]) == to ? 0 : of.bytes) <= limit_)
        order.emplace_back(-traffic[to] - 1e-3 * (limit_ - ledger_.at(to, t)), to);
    std::sort(order.begin(), order.end());
    if (order.empty()) return false;
    const double before = ledger_.at(d, t);
    const double most_before = ledger_.most(d);
    if (order.size() > kMostTargets) order.resize(kMostTargets);
    for (const auto& [minus, to] : order) {
      ledger_.move(set_, static_cast<std::int16_t>(to));
      if (ledger_.most(to) <= limit_ && ledger_.at(d, t) < before && ledger_.most(d) <= most_before) {
        for (const std::uint32_t n : set_) moved_[n] = 1;
        return true;
      }
      ledger_.move(set_, static_cast<std::int16_t>(d));
    }
    return false;
  }

  static constexpr double kSmall = 0.5;

  const PlacementGraph& graph_;
  std::span<const Ticks> transfer_;
  std::span<const std::vector<std::uint32_t>> members_;
  double limit_;
  Placement& placement_;
  std::size_t devices_;
  MemoryLedger ledger_;
  std::vector<char> moved_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> set_;
  std::vector<std::pair<std::uint32_t, double>> holders_;
};

/// The most that all devices together hold at a time, each output once.
double originals_at_once(std::vector<Residence> all) {
  std::erase_if(all, [](const Residence& r) { return r.is_copy; });
  for (Residence& r : all) r.device = 0;
  return memory_peaks(all, 1).front().bytes;
}

}  // namespace

OverflowResult resolve_overflow(const PlacementGraph& graph, const PlacementMachine& machine,
                                const ReplayOptions& options, Placement& placement, int most_rounds) {
  double limit = machine.memory, lowest = 0;
  bool is_first = true;
  int stuck = 0;  // rounds that hardly came nearer
  return overflow_rounds(graph, machine, options, placement, most_rounds, [&](const OverflowState& state) {
    if (originals_at_once(state.residences) > kMostOfAll * machine.memory * machine.devices) return false;
    stuck = is_first || state.peak < 0.99 * lowest ? 0 : stuck + 1;
    if (stuck == kMostStuck) return false;
    lowest = is_first ? state.peak : std::min(lowest, state.peak);
    if (!is_first) limit *= 0.985;  // moves change times: aim lower
    is_first = false;
    OverflowRound(graph, machine, state, limit, placement).run();
    return true;
  });
}

MemoryBound memory_bound(const PlacementGraph& graph, const PlacementMachine& machine) {
  std::vector<double> group(static_cast<std::size_t>(graph.groups), 0);
  double all = 0;
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    if (graph.lifetime[n] == Lifetime::residual) {
      all += graph.memory[n];
      if (graph.group[n] >= 0) {
        double& sum = group[static_cast<std::size_t>(graph.group[n])];
        sum += graph.memory[n];
        if (sum > machine.memory) return {MemoryBound::Kind::group, sum, n};
      }
    }
    double needs = graph.memory[n];
    for (const std::uint32_t e : graph.in_edges(n)) {
      // Of several edges between two nodes the largest counts: they may show the same output.
      if (graph.lifetime[graph.from[e]] == Lifetime::reference) continue;
      needs += graph.bytes[e];
    }
    if (needs > machine.memory) {
      needs = graph.memory[n];
      std::vector<std::pair<std::uint32_t, double>> read;
      for (const std::uint32_t e : graph.in_edges(n))
        if (graph.lifetime[graph.from[e]] != Lifetime::reference) read.emplace_back(graph.from[e], graph.bytes[e]);
      std::sort(read.begin(), read.end());
      for (std::size_t i = 0; i < read.size(); ++i)
        if (i + 1 == read.size() || read[i].first != read[i + 1].first) needs += read[i].second;
      if (needs > machine.memory) return {MemoryBound::Kind::node, needs, n};
    }
  }
  if (all > machine.memory * machine.devices) return {MemoryBound::Kind::all, all, 0};
  return {};
}

}  // namespace epocast
