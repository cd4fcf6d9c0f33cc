#include "sim/collectives/plan.hpp"

#include <algorithm>
#include <unordered_map>

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

  CollectiveSchedule schedule = make_schedule(collective.op, collective.algorithm, ranks, bytes, node_of);
  double uniform_bytes = 0, uniform_delay = 0, idle = 0;  // of the aggregated rounds since the last step
  const auto flush = [&] {
    if (uniform_delay > 0 || uniform_bytes > 0) plan.steps.push_back({uniform_delay, to_neighbour(uniform_bytes)});
    uniform_bytes = uniform_delay = 0;
  };
  for (const Round& round : schedule.rounds) {
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
  if (plan.level == CollectiveLevel::closed_form)
    plan.idle_time = closed_form_time(collective.op, collective.algorithm, ranks, bytes,
                                      {network.alpha, network.beta, collective.gamma}, node_of);
  if (collective.measured) plan.idle_time = collective.measured->value;
  if (plan.level == CollectiveLevel::message) {
    plan.idle_time = idle_time_of_messages(schedule, hosts, collective.gamma, engine);
    plan.schedule = std::move(schedule);
  }
  return plan;
}

}  // namespace epocast
