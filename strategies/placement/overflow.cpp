#include "strategies/placement/overflow.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "strategies/placement/max_tree.hpp"

namespace epocast {
namespace {

constexpr std::size_t kMostMoments = 1 << 15;  // times told apart; what lies between two counts at both
constexpr std::size_t kMostReaders = 8;        // that leave together
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
  OverflowRound(const PlacementGraph& graph, const PlacementMachine& machine, std::span<const Ticks> transfer,
                std::span<const std::vector<std::uint32_t>> members, const ReplayResult& times, double limit,
                Placement& placement)
      : graph_(graph),
        transfer_(transfer),
        members_(members),
        limit_(limit),
        placement_(placement),
        devices_(static_cast<std::size_t>(machine.devices)),
        moved_(graph.size(), 0),
        mark_(graph.size(), 0) {
    number_moments(times);
    memory_.assign(devices_, MaxTree(moments_));
    for (std::uint32_t n = 0; n < graph.size(); ++n) occupy(n, 1);
  }

  /// Gives the number of sets of nodes that moved.
  std::size_t run() {
    std::size_t moves = 0;
    std::vector<char> hopeless(devices_, 0);
    for (std::size_t relieved = 0; relieved < kMostMomentsRelieved; ++relieved) {
      std::size_t worst = devices_;
      for (std::size_t d = 0; d < devices_; ++d)
        if (!hopeless[d] && memory_[d].max() > limit_ && (worst == devices_ || memory_[d].max() > memory_[worst].max()))
          worst = d;
      if (worst == devices_) return moves;
      const std::size_t moment = memory_[worst].argmax();
      moves += relieve(worst, moment);
      if (memory_[worst].max(moment, moment) > limit_) hopeless[worst] = 1;
    }
    return moves;
  }

 private:
  struct Candidate {
    double cost, bytes;
    std::uint32_t holder;
  };

  void number_moments(const ReplayResult& times) {
    std::vector<Ticks> all(times.end);
    for (std::size_t n = 0; n < graph_.size(); ++n)
      if (graph_.time[n] > 0) all.push_back(times.start[n]);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const std::size_t step = all.size() / kMostMoments + 1;
    std::vector<Ticks> borders;
    for (std::size_t i = 0; i < all.size(); i += step) borders.push_back(all[i]);
    moments_ = borders.size();
    // Moment i lasts from border i up to border i + 1.
    const auto moment = [&](Ticks t) {
      const auto at = std::upper_bound(borders.begin(), borders.end(), t) - borders.begin();
      return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(at, 1) - 1);
    };
    start_.resize(graph_.size());
    end_.resize(graph_.size());
    latest_send_.resize(graph_.size());
    for (std::size_t n = 0; n < graph_.size(); ++n) {
      start_[n] = moment(times.start[n]);
      // The last moment in which it runs; nothing runs at its end.
      end_[n] = std::max(start_[n], moment(std::max<Ticks>(0, times.end[n] - 1)));
      latest_send_[n] = end_[n];
    }
    for (const OutputTransfer& t : times.transfers)
      latest_send_[t.node] = std::max(latest_send_[t.node], moment(std::max<Ticks>(0, t.end - 1)));
  }

  /// Adds what node n's output occupies, everywhere, `sign` times.
  void occupy(std::uint32_t n, int sign) {
    const double own = graph_.memory[n];
    const std::int16_t home = placement_[n];
    std::uint32_t until = end_[n];
    away_.clear();
    bool goes_away = false;
    for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
      const double bytes = graph_.bytes[e];
      if (bytes <= 0) continue;
      const std::uint32_t v = graph_.to[e];
      if (placement_[v] == home) {
        until = std::max(until, end_[v]);
        continue;
      }
      goes_away = true;
      const bool is_whole = bytes >= own;
      auto found = std::find_if(away_.begin(), away_.end(), [&](const Away& a) { return a.device == placement_[v]; });
      if (found == away_.end() || !is_whole) {
        away_.push_back({placement_[v], bytes, end_[v]});
      } else {
        found->last = std::max(found->last, end_[v]);
      }
    }
    for (const Away& a : away_)
      memory_[static_cast<std::size_t>(a.device)].add(std::min(end_[n], a.last), a.last, sign * a.bytes);
    if (own <= 0) return;
    if (graph_.lifetime[n] == Lifetime::residual) {
      memory_[static_cast<std::size_t>(home)].add(0, moments_ - 1, sign * own);
    } else {
      if (goes_away) until = std::max(until, latest_send_[n]);
      memory_[static_cast<std::size_t>(home)].add(start_[n], until, sign * own);
    }
  }

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
      if (graph_.bytes[e] <= 0 || static_cast<std::size_t>(placement_[v]) != d || end_[v] < t) continue;
      if (graph_.group[v] >= 0 || moved_[v] || out.size() >= kMostReaders) return out.clear();
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    }
    if (is_home && (out.empty() || start_[n] >= t)) {
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
      if (is_home && (graph_.memory[n] <= 0 || (!is_residual && start_[n] > t))) continue;
      if (!is_home && end_[n] > t) continue;
      if (is_home && is_residual) {
        out.emplace_back(n, graph_.memory[n]);
        continue;
      }
      double bytes = is_home && end_[n] >= t ? graph_.memory[n] : 0;
      for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
        if (graph_.bytes[e] <= 0 || static_cast<std::size_t>(placement_[graph_.to[e]]) != d || end_[graph_.to[e]] < t)
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
    const double overflow = memory_[d].max(t, t) - limit_;
    for (const Candidate& c : all)
      if (c.bytes >= overflow) enough.push(c);
    std::size_t moves = 0, failures = 0;
    while (memory_[d].max(t, t) > kMargin * limit_ && !(cheap.empty() && enough.empty())) {
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
          memory_[to].max(t, t) + (static_cast<std::size_t>(placement_[of.holder]) == to ? 0 : of.bytes) <= limit_)
        order.emplace_back(-traffic[to] - 1e-3 * (limit_ - memory_[to].max(t, t)), to);
    std::sort(order.begin(), order.end());
    if (order.empty()) return false;
    // What changes place in memory: the set's outputs, and what it reads.
    affected_ = set_;
    for (const std::uint32_t n : set_)
      for (const std::uint32_t e : graph_.in_edges(n))
        if (graph_.bytes[e] > 0) affected_.push_back(graph_.from[e]);
    std::sort(affected_.begin(), affected_.end());
    affected_.erase(std::unique(affected_.begin(), affected_.end()), affected_.end());
    const double before = memory_[d].max(t, t);
    const double most_before = memory_[d].max();
    if (order.size() > kMostTargets) order.resize(kMostTargets);
    for (const auto& [minus, to] : order) {
      shift(static_cast<std::int16_t>(to));
      if (memory_[to].max() <= limit_ && memory_[d].max(t, t) < before && memory_[d].max() <= most_before) {
        for (const std::uint32_t n : set_) moved_[n] = 1;
        return true;
      }
      shift(static_cast<std::int16_t>(d));
    }
    return false;
  }

  void shift(std::int16_t to) {
    for (const std::uint32_t n : affected_) occupy(n, -1);
    for (const std::uint32_t n : set_) placement_[n] = to;
    for (const std::uint32_t n : affected_) occupy(n, 1);
  }

  static constexpr double kSmall = 0.5;

  struct Away {
    std::int16_t device;
    double bytes;
    std::uint32_t last;
  };

  const PlacementGraph& graph_;
  std::span<const Ticks> transfer_;
  std::span<const std::vector<std::uint32_t>> members_;
  double limit_;
  Placement& placement_;
  std::size_t devices_;
  std::size_t moments_ = 0;
  std::vector<std::uint32_t> start_, end_, latest_send_;  ///< moments, both included
  std::vector<MaxTree> memory_;                           ///< by device
  std::vector<char> moved_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t stamp_ = 0;
  std::vector<Away> away_;
  std::vector<std::uint32_t> set_, affected_;
  std::vector<std::pair<std::uint32_t, double>> holders_;
};

double highest(const std::vector<MemoryPeak>& peaks) {
  double out = 0;
  for (const MemoryPeak& peak : peaks) out = std::max(out, peak.bytes);
  return out;
}

/// The most that all devices together hold at a time, each output once.
double originals_at_once(std::vector<Residence> all) {
  std::erase_if(all, [](const Residence& r) { return r.is_copy; });
  for (Residence& r : all) r.device = 0;
  return memory_peaks(all, 1).front().bytes;
}

}  // namespace

OverflowResult resolve_overflow(const PlacementGraph& graph, const PlacementMachine& machine,
                                const ReplayOptions& options, Placement& placement, int most_rounds) {
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  std::vector<std::vector<std::uint32_t>> members(static_cast<std::size_t>(graph.groups));
  for (std::uint32_t n = 0; n < graph.size(); ++n)
    if (graph.group[n] >= 0) members[static_cast<std::size_t>(graph.group[n])].push_back(n);
  const Placement before = placement;
  OverflowResult out;
  double limit = machine.memory, lowest = 0;
  int stuck = 0;  // rounds that hardly came nearer
  for (out.rounds = 0; out.rounds <= most_rounds; ++out.rounds) {
    const ReplayResult times = replay(graph, machine, placement, options);
    std::vector<Residence> all = residences(graph, placement, times);
    const double peak = highest(memory_peaks(all, machine.devices));
    out.fits = peak <= machine.memory;
    if (out.fits || out.rounds == most_rounds ||
        originals_at_once(std::move(all)) > kMostOfAll * machine.memory * machine.devices)
      break;
    stuck = out.rounds == 0 || peak < 0.99 * lowest ? 0 : stuck + 1;
    if (stuck == kMostStuck) break;
    lowest = out.rounds == 0 ? peak : std::min(lowest, peak);
    if (out.rounds > 0) limit *= 0.985;  // moves change times: aim lower
    OverflowRound(graph, machine, transfer, members, times, limit, placement).run();
  }
  for (std::size_t n = 0; n < before.size(); ++n)
    if (before[n] != placement[n]) ++out.moved_nodes;
  return out;
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
