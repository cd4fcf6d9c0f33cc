#include "sim/collectives/plan.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace epocast {
namespace {

/// Largest latency of a round's messages, and how long its flows take side by side on an otherwise idle network.
struct RoundTime {
  double latency = 0;
  double transmission = 0;
  double reduction_bytes = 0;
};

/// A uniform round on a star costs every rank the same as sending to its right neighbour.
Round to_neighbour(double bytes) {
  Round round;
  round.permutation = Permutation{.kind = Permutation::Kind::shift, .operand = 1, .bytes = bytes};
  return round;
}

RoundTime measure(const Round& round, const std::vector<int>& hosts, const GroupNetwork& network, SimEngine& engine) {
  RoundTime time;
  if (round.is_uniform() && network.uniform) {
    const double bytes = round.bytes_per_rank();
    return {network.alpha, bytes * network.beta, round.reduce_bytes_per_rank()};
  }
  std::unordered_map<int, double> load;
  for_each_message(round, static_cast<int>(hosts.size()), [&](const Message& m) {
    const Route& route = engine.route(hosts[m.from], hosts[m.to]);
    time.latency = std::max(time.latency, route.latency);
    time.reduction_bytes = std::max(time.reduction_bytes, m.reduce_bytes);
    for (const int link : route.links) {
      double& bytes = load[link];
      bytes = engine.link_sharing(link) == LinkSharing::kShared ? bytes + m.bytes : std::max(bytes, m.bytes);
      time.transmission = std::max(time.transmission, bytes / engine.link_bandwidth(link));
    }
  });
  return time;
}

/// How long the rounds take message by message where none contend: every rank at its own pace.
double idle_time_of_messages(const CollectiveSchedule& schedule, const std::vector<int>& hosts, double gamma,
                             SimEngine& engine) {
  std::vector<double> here(hosts.size(), 0),
      next(hosts.size());  // s: when each rank enters the round, and the next one
  for (const Round& round : schedule.rounds) {
    for (int repetition = 0; repetition < round.repeat; ++repetition) {
      next = here;
      for_each_message(round, schedule.ranks, [&](const Message& m) {
        const auto from = static_cast<std::size_t>(m.from), to = static_cast<std::size_t>(m.to);
        const Route& route = engine.route(hosts[from], hosts[to]);
        const double arrival = std::max(here[from], here[to]) + route.latency + m.bytes / route.bandwidth;
        next[from] = std::max(next[from], arrival);
        next[to] = std::max(next[to], arrival + m.reduce_bytes * gamma);
      });
      here.swap(next);
    }
  }
  return *std::max_element(here.begin(), here.end());
}

/// Multiplies a round's bytes by its repetitions.
Round all_repetitions(Round round) {
  for (Message& m : round.messages) m.bytes *= round.repeat;
  if (round.permutation) round.permutation->bytes *= round.repeat;
  round.repeat = 1;
  return round;
}

/// Whether the collective can use the rings of the network at all: a flat ring only where it stays inside one node.
bool can_use_rings(const Collective& collective, const GroupNetwork& network) {
  return has_rings(collective.algorithm, collective.op) &&
         (network.one_node || collective.algorithm == CollectiveAlgorithm::hierarchical);
}

/// A round in which every ring moves its share of each message, between the ranks that stand where the message's ranks
/// do. Each ring combines its share at its share of the rank's rate, which takes as long as all at the whole rate.
/// `own_ranks`: rank r of ring k is number k P + r, so that rings go on each at their own pace; else r's own number,
/// and what several rings send from one rank to another is one message.
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

/// s that the busiest link needs for all that crosses it: no order of the messages can be faster.
double time_of_busiest_link(const CollectiveSchedule& schedule, const std::vector<int>& hosts, SimEngine& engine) {
  std::unordered_map<int, double> load;
  double time = 0;
  for (const Round& round : schedule.rounds)
    for_each_message(round, schedule.ranks, [&](const Message& m) {
      for (const int link : engine.route(hosts[m.from], hosts[m.to]).links)
        if (engine.link_sharing(link) == LinkSharing::kShared)
          time = std::max(time, (load[link] += round.repeat * m.bytes) / engine.link_bandwidth(link));
    });
  return time;
}

/// Makes the plan's schedule one of all rings, as if every rank took part in each as a rank of its own.
void plan_messages_on_rings(CollectivePlan& plan, const std::vector<int>& hosts, const std::vector<Ring>& rings,
                            SimEngine& engine) {
  const int ranks = plan.schedule.ranks;
  for (Round& round : plan.schedule.rounds) round = on_rings(round, ranks, rings, true);
  plan.schedule.ranks = ranks * static_cast<int>(rings.size());
  for (const Ring& ring : rings)
    for (const int rank : ring.order) plan.hosts.push_back(hosts[rank]);
  // Messages of different rings share links, which the time of each alone does not tell.
  plan.idle_time = std::max(idle_time_of_messages(plan.schedule, plan.hosts, plan.gamma, engine),
                            time_of_busiest_link(plan.schedule, plan.hosts, engine));
}

}  // namespace

CollectivePlan plan_collective(const Collective& collective, const std::vector<int>& hosts,
                               const std::vector<int>& node_of, const GroupNetwork& network, bool may_contend,
                               SimEngine& engine) {
  const int ranks = static_cast<int>(hosts.size());
  const double bytes = collective.bytes.value;
  CollectivePlan plan;
  plan.gamma = collective.gamma;
  plan.level = collective.level;
  if (plan.level == CollectiveLevel::automatic) {
    const bool exact = network.uniform && closed_form_is_exact(collective.op, collective.algorithm, ranks);
    plan.level = exact && !may_contend ? CollectiveLevel::closed_form : CollectiveLevel::flow;
  }
  // Where ranks are not in step, waiting for all of them after each round would take longer than the messages do.
  if (plan.level == CollectiveLevel::flow && !closed_form_is_exact(collective.op, collective.algorithm, ranks))
    plan.level = CollectiveLevel::message;

  if (collective.measured) {
    plan.level = CollectiveLevel::closed_form;
    plan.measured = true;
  }

  const std::vector<Ring> rings =
      can_use_rings(collective, network) ? network.choose_rings(collective.rings) : std::vector<Ring>{};
  CollectiveSchedule schedule = make_schedule(collective.op, collective.algorithm, ranks, bytes, node_of);
  double uniform_bytes = 0, uniform_delay = 0, idle = 0;  // of the aggregated rounds since the last step
  const auto flush = [&] {
    if (uniform_delay > 0 || uniform_bytes > 0) plan.steps.push_back({uniform_delay, to_neighbour(uniform_bytes)});
    uniform_bytes = uniform_delay = 0;
  };
  Round divided;
  for (const Round& scheduled : schedule.rounds) {
    const Round& round = rings.empty() ? scheduled : (divided = on_rings(scheduled, ranks, rings, false));
    const RoundTime time = measure(round, hosts, network, engine);
    const double delay = round.repeat * (time.latency + time.reduction_bytes * collective.gamma);
    idle += delay + round.repeat * time.transmission;
    if (round.is_uniform() && network.star) {
      // On a star every permutation loads all links alike: consecutive ones make one flow per rank.
      uniform_bytes += round.repeat * round.bytes_per_rank();
      uniform_delay += delay;
    } else {
      flush();
      plan.steps.push_back({delay, all_repetitions(round)});
    }
  }
  flush();

  plan.idle_time = idle;
  if (plan.level == CollectiveLevel::closed_form && rings.empty())  // else the rounds' times add up to the formula
    plan.idle_time = closed_form_time(collective.op, collective.algorithm, ranks, bytes,
                                      {network.alpha, network.beta, collective.gamma}, node_of);
  if (collective.measured) plan.idle_time = collective.measured->value;
  if (plan.level == CollectiveLevel::message) {
    plan.schedule = std::move(schedule);
    if (rings.empty())
      plan.idle_time = idle_time_of_messages(plan.schedule, hosts, collective.gamma, engine);
    else
      plan_messages_on_rings(plan, hosts, rings, engine);
  }
  return plan;
}

int most_rings(const Collective& collective, const GroupNetwork& network) {
  return can_use_rings(collective, network) ? std::max(1, static_cast<int>(network.rings.size())) : 1;
}

}  // namespace epocast
