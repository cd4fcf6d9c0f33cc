#include "sim/collectives/schedule_time.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace epocast {
namespace {

/// Bytes on links, most of which carry none.
class LinkLoads {
 public:
  /// From now on none carries any.
  void begin(int links) {
    bytes_.resize(static_cast<std::size_t>(links));
    for (const int link : loaded_) bytes_[static_cast<std::size_t>(link)] = 0;
    loaded_.clear();
  }
  double& of(int link) {
    double& bytes = bytes_[static_cast<std::size_t>(link)];
    if (bytes == 0) loaded_.push_back(link);
    return bytes;
  }

 private:
  std::vector<double> bytes_;  ///< by link
  std::vector<int> loaded_;
};

/// When the last rank is through if each goes on at its own pace and a message takes duration(message) [s].
template <class Duration>
double own_pace(const CollectiveSchedule& schedule, double gamma, Duration duration) {
  std::vector<double> here(static_cast<std::size_t>(schedule.ranks), 0);  // s: when each rank enters the round
  std::vector<double> next = here;                                        // and the one after it
  for (const Round& round : schedule.rounds) {
    for (int repetition = 0; repetition < round.repeat; ++repetition) {
      next = here;
      for_each_message(round, schedule.ranks, [&](const Message& m) {
        const auto from = static_cast<std::size_t>(m.from), to = static_cast<std::size_t>(m.to);
        const double arrival = std::max(here[from], here[to]) + duration(m);
        next[from] = std::max(next[from], arrival);
        next[to] = std::max(next[to], arrival + m.reduce_bytes * gamma);
      });
      here.swap(next);
    }
  }
  return *std::max_element(here.begin(), here.end());
}

}  // namespace

IdleTime idle_time(const Round& round, const std::vector<int>& hosts, const GroupNetwork& network, SimEngine& engine) {
  IdleTime time;
  if (round.is_uniform() && network.uniform) {
    const double bytes = round.bytes_per_rank();
    return {network.alpha, bytes * network.beta, round.reduce_bytes_per_rank()};
  }
  auto& loads = engine.kept<LinkLoads>();
  loads.begin(engine.link_count());
  for_each_message(round, static_cast<int>(hosts.size()), [&](const Message& m) {
    const Route& route = engine.route(hosts[m.from], hosts[m.to]);
    time.latency = std::max(time.latency, engine.collective_latency(route));
    time.reduction_bytes = std::max(time.reduction_bytes, m.reduce_bytes);
    for (const int link : route.bottlenecks()) {
      double& bytes = loads.of(link);
      bytes = engine.link_sharing(link) == LinkSharing::kShared ? bytes + m.bytes : std::max(bytes, m.bytes);
      time.transmission = std::max(time.transmission, bytes / engine.link_bandwidth(link));
    }
  });
  return time;
}

double idle_time_of_messages(const CollectiveSchedule& schedule, const std::vector<int>& hosts, double gamma,
                             SimEngine& engine) {
  // A rank sends to few others again and again, in chunks of a vector: their ways are at hand.
  constexpr std::size_t kWays = 4;
  struct Way {
    int to = -1;
    double latency = 0, bandwidth = 0;
  };
  std::vector<Way> ways(kWays * hosts.size());
  return own_pace(schedule, gamma, [&](const Message& m) {
    Way& way = ways[kWays * static_cast<std::size_t>(m.from) + static_cast<std::size_t>(m.to) % kWays];
    if (way.to != m.to) {
      const Route& route = engine.route(hosts[m.from], hosts[m.to]);
      way = {m.to, engine.collective_latency(route), route.bandwidth};
    }
    return way.latency + m.bytes / way.bandwidth;
  });
}

double idle_time_on_star(const CollectiveSchedule& schedule, const AlphaBetaGamma& link) {
  return own_pace(schedule, link.gamma, [&](const Message& m) { return link.alpha + m.bytes * link.beta; });
}

double time_of_busiest_link(const CollectiveSchedule& schedule, const std::vector<int>& hosts, SimEngine& engine) {
  auto& loads = engine.kept<LinkLoads>();
  loads.begin(engine.link_count());
  double time = 0;
  for (const Round& round : schedule.rounds)
    for_each_message(round, schedule.ranks, [&](const Message& m) {
      for (const int link : engine.route(hosts[m.from], hosts[m.to]).bottlenecks())
        if (engine.link_sharing(link) == LinkSharing::kShared)
          time = std::max(time, (loads.of(link) += round.repeat * m.bytes) / engine.link_bandwidth(link));
    });
  return time;
}

Round on_rings(const Round& round, int ranks, const std::vector<Ring>& rings, bool own_ranks) {
  Round out{.repeat = round.repeat};
  std::map<std::pair<int, int>, std::size_t> known;  // source and target -> message
  for (int k = 0; k < static_cast<int>(rings.size()); ++k)
    for_each_message(round, ranks, [&](const Message& m) {
      const Ring& ring = rings[k];
      if (own_ranks) {
        out.messages.push_back({k * ranks + m.from, k * ranks + m.to, m.bytes * ring.share, m.reduce_bytes});
        return;
      }
      const int from = ring.order[m.from], to = ring.order[m.to];
      const auto [place, is_new] = known.try_emplace({from, to}, out.messages.size());
      if (is_new) out.messages.push_back({from, to, 0, m.reduce_bytes});
      out.messages[place->second].bytes += m.bytes * ring.share;
    });
  return out;
}

namespace {

/// s: the largest sum of latencies that a block meets in a stream's round, on the slowest of its rings over `ring`.
double longest_way(const Round& round, int ranks, const Ring& ring, const std::vector<int>& hosts, SimEngine& engine) {
  double longest = 0;
  for (auto hop = round.messages.begin(); hop != round.messages.end();) {
    double around = 0, least = std::numeric_limits<double>::infinity(), most = 0;
    for (const auto end = hop + ranks; hop != end; ++hop) {
      const Route& route = engine.route(hosts[ring.order[hop->from]], hosts[ring.order[hop->to]]);
      const double latency = engine.collective_latency(route);
      around += latency;
      least = std::min(least, latency);
      most = std::max(most, latency);
    }
    // A block makes all hops but one. More repetitions are windows: the slowest hop's wait for each.
    longest = std::max(longest, around - least + most * (round.repeat + 1.0 - ranks));
  }
  return longest;
}

}  // namespace

Stream stream_of(const CollectiveSchedule& schedule, const std::vector<int>& hosts, const GroupNetwork& network,
                 std::vector<Ring> rings, SimEngine& engine) {
  if (rings.empty()) {
    rings = {Ring{std::vector<int>(hosts.size())}};
    std::iota(rings.front().order.begin(), rings.front().order.end(), 0);
  }
  Stream out;
  Round all;                                     // repetitions together
  std::vector<double> reduced(hosts.size(), 0);  // by rank, the same on whatever ring
  for (const Round& round : schedule.rounds) {
    double longest = 0;
    for (const Ring& ring : rings) longest = std::max(longest, longest_way(round, schedule.ranks, ring, hosts, engine));
    out.time.latency += longest;
    for (const Message& m : round.messages) {
      all.messages.push_back({m.from, m.to, m.bytes * round.repeat, 0});
      reduced[m.to] += m.reduce_bytes * round.repeat;
    }
  }
  out.flows = on_rings(all, schedule.ranks, rings, false);
  out.time.transmission = idle_time(out.flows, hosts, network, engine).transmission;
  out.time.reduction_bytes = *std::max_element(reduced.begin(), reduced.end());
  return out;
}

IdleTime idle_time(const CollectiveSchedule& schedule, const std::vector<int>& hosts, const GroupNetwork& network,
                   const std::vector<Ring>& rings, SimEngine& engine) {
  if (schedule.is_stream) return stream_of(schedule, hosts, network, rings, engine).time;
  IdleTime sum;
  for (const Round& round : schedule.rounds) {
    const IdleTime one =
        idle_time(rings.empty() ? round : on_rings(round, schedule.ranks, rings, false), hosts, network, engine);
    sum.latency += round.repeat * one.latency;
    sum.transmission += round.repeat * one.transmission;
    sum.reduction_bytes += round.repeat * one.reduction_bytes;
  }
  return sum;
}

}  // namespace epocast
