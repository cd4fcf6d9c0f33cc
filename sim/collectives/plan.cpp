#include "sim/collectives/plan.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/collectives/schedule_time.hpp"
#include "sim/rounding.hpp"

namespace epocast {
namespace {

/// Trees of more ranks run as streams instead of messages: a vector of 25 MB has some 10,000 messages on so many.
constexpr int kMostRanksByMessage = 64;

/// A uniform round on a star costs every rank the same as sending to its right neighbour.
Round to_neighbour(double bytes) {
  Round round;
  round.permutation = Permutation{.kind = Permutation::Kind::shift, .operand = 1, .bytes = bytes};
  return round;
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
         (network.one_node || collective.algorithm != CollectiveAlgorithm::ring);
}

CollectiveSchedule schedule_of(const Collective& collective, int ranks, const std::vector<int>& node_of,
                               const std::vector<Ring>& rings, const SimEngine& engine) {
  return in_windows(make_schedule(collective.op, collective.algorithm, ranks, collective.bytes.value, node_of),
                    window_of(rings, engine.window()));
}

/// The chunks of a double binary tree that an edge carries, as one message: those of a vector too small to be cut.
Round all_chunks(const Collective& collective, int ranks) {
  Round all;
  for (const Round& round : make_schedule(collective.op, collective.algorithm, ranks, 1).rounds)
    for (const Message& m : round.messages)
      all.messages.push_back({m.from, m.to, m.bytes * collective.bytes.value, m.reduce_bytes * collective.bytes.value});
  return all;
}

/// Ranks of a double binary tree are not in step, so no formula has its time; on a star where nothing contends its
/// messages need not be simulated either, as none waits for a link.
CollectivePlan plan_trees_on_star(const Collective& collective, int ranks, const GroupNetwork& network,
                                  const SimEngine& engine) {
  CollectivePlan plan;
  plan.algorithm = collective.algorithm;
  plan.level = CollectiveLevel::closed_form;
  plan.gamma = collective.gamma;
  const AlphaBetaGamma link{network.alpha, network.beta, collective.gamma};
  plan.idle_time = idle_time_on_star(schedule_of(collective, ranks, {}, {}, engine), link);
  plan.steps.push_back({0, all_chunks(collective, ranks)});
  return plan;
}

/// The trees of a large group: every edge is a flow, all at once, as the chunks are a stream along both trees. What its
/// messages wait for apart from links that they share (latencies, the filling of the trees, reductions) comes first.
CollectivePlan plan_streams(const Collective& collective, const std::vector<int>& hosts, const GroupNetwork& network,
                            SimEngine& engine) {
  const int ranks = static_cast<int>(hosts.size());
  CollectivePlan plan;
  plan.algorithm = collective.algorithm;
  plan.level = CollectiveLevel::flow;
  plan.gamma = collective.gamma;
  Round edges = all_chunks(collective, ranks);
  std::vector<double> sending(hosts.size()), receiving(hosts.size());  // s
  double busiest = 0;                                                  // of ranks, as if each had one link
  for (const Message& m : edges.messages) {
    const double time = m.bytes / engine.route(hosts[m.from], hosts[m.to]).bandwidth;
    busiest = std::max({busiest, sending[m.from] += time, receiving[m.to] += time});
  }
  busiest = std::min(busiest, idle_time(edges, hosts, network, engine).transmission);  // the flows take no less
  const double alone =
      idle_time_of_messages(schedule_of(collective, ranks, {}, {}, engine), hosts, collective.gamma, engine);
  plan.idle_time = alone;
  plan.steps.push_back({std::max(0.0, alone - busiest), std::move(edges)});
  return plan;
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

bool alike(const FlowStep& a, const FlowStep& b) {
  if (!nearly_equal(a.delay, b.delay) || a.flows.repeat != b.flows.repeat ||
      a.flows.is_uniform() != b.flows.is_uniform())
    return false;
  if (a.flows.is_uniform())
    return a.flows.permutation->kind == b.flows.permutation->kind &&
           a.flows.permutation->operand == b.flows.permutation->operand &&
           a.flows.permutation->per_node == b.flows.permutation->per_node &&
           a.flows.permutation->bytes == b.flows.permutation->bytes;
  return std::ranges::equal(a.flows.messages, b.flows.messages, [](const Message& m, const Message& n) {
    return m.from == n.from && m.to == n.to && m.bytes == n.bytes;
  });
}

}  // namespace

bool alike(const CollectivePlan& a, const CollectivePlan& b) {
  return a.algorithm == b.algorithm && a.level == b.level && a.level != CollectiveLevel::message &&
         a.measured == b.measured && a.gamma == b.gamma && nearly_equal(a.idle_time, b.idle_time) &&
         std::ranges::equal(a.steps, b.steps, [](const FlowStep& s, const FlowStep& t) { return alike(s, t); });
}

CollectivePlan plan_collective(const Collective& collective, const std::vector<int>& hosts,
                               const std::vector<int>& node_of, const GroupNetwork& network, bool may_contend,
                               SimEngine& engine) {
  const int ranks = static_cast<int>(hosts.size());
  const double bytes = collective.bytes.value;
  const bool in_step = closed_form_is_exact(collective.op, collective.algorithm, ranks);
  if (!in_step && network.uniform && !may_contend && !collective.measured &&
      collective.level == CollectiveLevel::automatic)
    return plan_trees_on_star(collective, ranks, network, engine);
  if (!in_step && ranks > kMostRanksByMessage && !collective.measured &&
      (collective.level == CollectiveLevel::automatic || collective.level == CollectiveLevel::flow))
    return plan_streams(collective, hosts, network, engine);
  CollectivePlan plan;
  plan.algorithm = collective.algorithm;
  plan.gamma = collective.gamma;
  plan.level = collective.level;
  if (plan.level == CollectiveLevel::automatic) {
    plan.level = in_step && network.uniform && !may_contend ? CollectiveLevel::closed_form : CollectiveLevel::flow;
  }
  // Where ranks are not in step, waiting for all of them after each round would take longer than the messages do.
  if (plan.level == CollectiveLevel::flow && !in_step) plan.level = CollectiveLevel::message;

  if (collective.measured) {
    plan.level = CollectiveLevel::closed_form;
    plan.measured = true;
  }

  const std::vector<Ring> rings = rings_of(collective, network);
  CollectiveSchedule schedule = schedule_of(collective, ranks, node_of, rings, engine);
  // A stream has no messages that wait for each other.
  if (plan.level == CollectiveLevel::message && schedule.is_stream) plan.level = CollectiveLevel::flow;
  double uniform_bytes = 0, uniform_delay = 0, idle = 0;  // of the aggregated rounds since the last step
  const auto flush = [&] {
    if (uniform_delay > 0 || uniform_bytes > 0) plan.steps.push_back({uniform_delay, to_neighbour(uniform_bytes)});
    uniform_bytes = uniform_delay = 0;
  };
  const auto add = [&](const Round& round) {
    const IdleTime time = idle_time(round, hosts, network, engine);
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
  };
  if (schedule.is_stream) {
    Stream stream = stream_of(schedule, hosts, network, rings, engine);
    idle = stream.time.seconds(collective.gamma);
    plan.steps.push_back({idle - stream.time.transmission, std::move(stream.flows)});
  } else {
    for (const Round& round : schedule.rounds) rings.empty() ? add(round) : add(on_rings(round, ranks, rings, false));
    flush();
  }

  plan.idle_time = idle;
  // The formula is of equal links, and knows nothing of windows; elsewhere the rounds' times add up to what it means.
  if (plan.level == CollectiveLevel::closed_form && network.uniform && engine.window() <= 0)
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

std::vector<Ring> rings_of(const Collective& collective, const GroupNetwork& network) {
  return can_use_rings(collective, network) ? network.choose_rings(collective.rings) : std::vector<Ring>{};
}

double window_of(const std::vector<Ring>& rings, double window) {
  if (rings.empty()) return window;
  return window / std::ranges::max(rings, {}, &Ring::share).share;
}

int most_rings(const Collective& collective, const GroupNetwork& network) {
  return can_use_rings(collective, network) ? std::max(1, static_cast<int>(network.rings.size())) : 1;
}

}  // namespace epocast
