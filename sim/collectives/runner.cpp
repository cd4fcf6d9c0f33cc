#include "sim/collectives/runner.hpp"

#include <algorithm>
#include "sim/error.hpp"

namespace epocast {
namespace {

// Token layout below the 16-bit tag: 1 bit kind, 13 bits slot, 18 bits round, 16 bits message.
constexpr std::uint32_t kMaxSlots = 1U << 13, kMaxRounds = 1U << 18, kMaxMessages = 1U << 16;

}  // namespace

std::uint64_t CollectiveRunner::pack(std::uint16_t tag, Event e) {
  return std::uint64_t{tag} << 48 | std::uint64_t{e.reduction} << 47 | std::uint64_t{e.slot} << 34 |
         std::uint64_t{e.round} << 16 | e.message;
}

CollectiveRunner::Event CollectiveRunner::unpack(std::uint64_t token) {
  return {(token >> 47 & 1) != 0, static_cast<std::uint32_t>(token >> 34 & (kMaxSlots - 1)),
          static_cast<std::uint32_t>(token >> 16 & (kMaxRounds - 1)),
          static_cast<std::uint32_t>(token & (kMaxMessages - 1))};
}

void CollectiveRunner::start(const CollectivePlan& plan, const std::vector<int>& hosts, std::uint64_t id) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(active_.size());
    if (slot >= kMaxSlots) throw SimulationError("more than 8192 collectives at once");
    active_.push_back(std::make_unique<Active>());
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Active& active = *active_[slot];
  active = {};
  active.plan = &plan;
  active.hosts = plan.hosts.empty() ? &hosts : &plan.hosts;
  active.id = id;
  switch (plan.level) {
    case CollectiveLevel::closed_form:
      engine_.start_timer(engine_.now() + plan.idle_time, pack(timer_tag_, {.slot = slot}));
      break;
    case CollectiveLevel::message: start_messages(slot); break;
    default: start_step(slot);
  }
}

std::uint64_t CollectiveRunner::on_timer(std::uint64_t token) {
  const Event event = unpack(token);
  Active& active = *active_[event.slot];
  switch (active.plan->level) {
    case CollectiveLevel::closed_form: {
      for (const FlowStep& step : active.plan->steps) count(active, step);
      return end(event.slot);
    }
    case CollectiveLevel::message: {
      if (active.pending == 0) return end(event.slot);  // nothing to send at all
      const Message m = message_at(active, event.round, event.message);
      if (event.reduction) {
        part_done(event.slot, m.to);
        return active.pending == 0 ? end(event.slot) : kNone;
      }
      engine_.start_flow((*active.hosts)[m.from], (*active.hosts)[m.to], m.bytes, pack(flow_tag_, event));
      return kNone;
    }
    default: return start_flows(event.slot);
  }
}

std::uint64_t CollectiveRunner::on_flow_done(std::uint64_t token) {
  const Event event = unpack(token);
  Active& active = *active_[event.slot];
  if (active.plan->level == CollectiveLevel::message) {
    const Message m = message_at(active, event.round, event.message);
    traffic_.count((*active.hosts)[m.from], (*active.hosts)[m.to], m.bytes);
    part_done(event.slot, m.from);
    if (const double time = m.reduce_bytes * active.plan->gamma; time > 0)
      engine_.start_timer(engine_.now() + time, pack(timer_tag_, {true, event.slot, event.round, event.message}));
    else
      part_done(event.slot, m.to);
    return active.pending == 0 ? end(event.slot) : kNone;
  }
  if (--active.pending > 0) return kNone;
  count(active, active.plan->steps[active.step]);
  if (++active.step == active.plan->steps.size()) return end(event.slot);
  start_step(event.slot);
  return kNone;
}

void CollectiveRunner::count(const Active& active, const FlowStep& step) {
  const bool off_links = active.plan->measured;
  if (symmetry_ != nullptr && step.set != FlowStep::kNoSet)
    return off_links ? traffic_.count_set_off_links(step.set, step.set_bytes)
                     : traffic_.count_set(step.set, step.set_bytes);
  for_each_message(step.flows, static_cast<int>(active.hosts->size()), [&](const Message& m) {
    const int from = (*active.hosts)[m.from], to = (*active.hosts)[m.to];
    off_links ? traffic_.count_off_links(from, to, m.bytes) : traffic_.count(from, to, m.bytes);
  });
}

std::uint64_t CollectiveRunner::end(std::uint32_t slot) {
  const std::uint64_t id = active_[slot]->id;
  active_[slot]->ranks.clear();
  free_.push_back(slot);
  return id;
}

void CollectiveRunner::start_step(std::uint32_t slot) {
  const Active& active = *active_[slot];
  engine_.start_timer(engine_.now() + active.plan->steps[active.step].delay, pack(timer_tag_, {.slot = slot}));
}

std::uint64_t CollectiveRunner::start_flows(std::uint32_t slot) {
  Active& active = *active_[slot];
  const FlowStep& step = active.plan->steps[active.step];
  const std::uint64_t token = pack(flow_tag_, {.slot = slot});
  active.pending = 0;
  if (symmetry_ != nullptr) {
    for (const FlowSymmetry::Part& part : symmetry_->parts(step.set)) {
      ++active.pending;
      engine_.start_class_flow(part.flow_class, part.bytes * step.set_bytes, token);
    }
  } else {
    for_each_message(step.flows, static_cast<int>(active.hosts->size()), [&](const Message& m) {
      ++active.pending;
      engine_.start_flow((*active.hosts)[m.from], (*active.hosts)[m.to], m.bytes, token);
    });
  }
  return kNone;
}

// Message level: every rank goes through the rounds at its own pace. A message starts once both its ranks have entered
// its round, as under MPI's rendezvous protocol; so a rank's links never carry two messages of one collective.

void CollectiveRunner::start_messages(std::uint32_t slot) {
  Active& active = *active_[slot];
  const CollectiveSchedule& schedule = active.plan->schedule;
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  active.sent.resize(schedule.rounds.size());
  active.received.resize(schedule.rounds.size());
  for (std::uint32_t k = 0; k < schedule.rounds.size(); ++k) {
    const Round& round = schedule.rounds[k];
    active.round_of.insert(active.round_of.end(), static_cast<std::size_t>(round.repeat), k);
    if (round.is_uniform()) continue;
    active.sent[k].assign(ranks, -1);
    active.received[k].assign(ranks, -1);
    for (std::int32_t m = 0; m < static_cast<std::int32_t>(round.messages.size()); ++m) {
      active.sent[k][static_cast<std::size_t>(round.messages[m].from)] = m;
      active.received[k][static_cast<std::size_t>(round.messages[m].to)] = m;
    }
  }
  if (active.round_of.size() >= kMaxRounds || ranks >= kMaxMessages)
    throw SimulationError("collective too large for the message level; use level: flow");
  active.ranks.resize(ranks);
  active.pending = static_cast<std::int64_t>(ranks);
  for (int r = 0; r < schedule.ranks; ++r) enter_next_round(slot, r);
  if (active.pending == 0) engine_.start_timer(engine_.now(), pack(timer_tag_, {.slot = slot}));
}

void CollectiveRunner::enter_next_round(std::uint32_t slot, int rank) {
  Active& active = *active_[slot];
  RankProgress& progress = active.ranks[static_cast<std::size_t>(rank)];
  for (++progress.round; progress.round < active.round_of.size(); ++progress.round) {
    const std::uint32_t round = progress.round;
    const std::int32_t send = send_of(active, round, rank), receive = receive_of(active, round, rank);
    progress.pending = (send >= 0) + (receive >= 0);
    const auto is_here = [&](int partner) { return active.ranks[static_cast<std::size_t>(partner)].round == round; };
    if (send >= 0 && is_here(message_at(active, round, static_cast<std::uint32_t>(send)).to))
      start_message(slot, round, static_cast<std::uint32_t>(send));
    if (receive >= 0 && is_here(message_at(active, round, static_cast<std::uint32_t>(receive)).from))
      start_message(slot, round, static_cast<std::uint32_t>(receive));
    if (progress.pending > 0) return;
  }
  --active.pending;
}

void CollectiveRunner::start_message(std::uint32_t slot, std::uint32_t round, std::uint32_t index) {
  const Active& active = *active_[slot];
  const Message m = message_at(active, round, index);
  const double latency = engine_.collective_latency(engine_.route((*active.hosts)[m.from], (*active.hosts)[m.to]));
  engine_.start_timer(engine_.now() + latency, pack(timer_tag_, {false, slot, round, index}));
}

void CollectiveRunner::part_done(std::uint32_t slot, int rank) {
  if (--active_[slot]->ranks[static_cast<std::size_t>(rank)].pending == 0) enter_next_round(slot, rank);
}

Message CollectiveRunner::message_at(const Active& active, std::uint32_t round, std::uint32_t index) const {
  const Round& r = active.plan->schedule.rounds[active.round_of[round]];
  if (!r.is_uniform()) return r.messages[index];
  const Permutation& rule = *r.permutation;
  const int from = static_cast<int>(index);
  return {from, rule.target_of(from, active.plan->schedule.ranks), rule.bytes, rule.reduce_bytes};
}

std::int32_t CollectiveRunner::send_of(const Active& active, std::uint32_t round, int rank) const {
  const std::uint32_t k = active.round_of[round];
  return active.sent[k].empty() ? rank : active.sent[k][static_cast<std::size_t>(rank)];
}

std::int32_t CollectiveRunner::receive_of(const Active& active, std::uint32_t round, int rank) const {
  const std::uint32_t k = active.round_of[round];
  if (!active.received[k].empty()) return active.received[k][static_cast<std::size_t>(rank)];
  const CollectiveSchedule& schedule = active.plan->schedule;
  return schedule.rounds[k].permutation->source_of(rank, schedule.ranks);
}

}  // namespace epocast
