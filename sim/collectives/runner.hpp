#pragma once
// Runs collectives on the engine at their planned level.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/collectives/plan.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/traffic.hpp"

namespace epocast {

/// Runs any number of collectives at once. Its timers and flows carry tokens whose upper 16 bits the owner chooses, so
/// that the owner can hand their events back.
class CollectiveRunner {
 public:
  /// `timer_tag`, `flow_tag`: upper 16 bits of this runner's tokens. With `symmetry`, of a
  /// folded run, one flow of each class of a step is simulated, for all teams; it outlives this.
  CollectiveRunner(SimEngine& engine, TrafficCounter& traffic, std::uint16_t timer_tag, std::uint16_t flow_tag,
                   const FlowSymmetry* symmetry)
      : engine_(engine), traffic_(traffic), timer_tag_(timer_tag), flow_tag_(flow_tag), symmetry_(symmetry) {}

  /// Starts a collective now. `plan` and `hosts` must outlive it; `id` comes back when it ends.
  void start(const CollectivePlan& plan, const std::vector<int>& hosts, std::uint64_t id);

  /// Handle an event with this runner's tag. Return the id of the collective that thereby ended, or kNone.
  std::uint64_t on_timer(std::uint64_t token);
  std::uint64_t on_flow_done(std::uint64_t token);

  /// What an event with this runner's tag is about: the collective's id, and which of its messages, in 24 bits that
  /// tell those of 256 rounds apart.
  std::uint64_t id_of(std::uint64_t token) const { return active_[unpack(token).slot]->id; }
  static std::uint64_t message_of(std::uint64_t token) { return token & ((std::uint64_t{1} << 24) - 1); }

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

 private:
  /// A rank's progress at message level.
  struct RankProgress {
    static constexpr std::uint32_t kNotEntered = ~std::uint32_t{0};
    std::uint32_t round = kNotEntered;  ///< repetitions counted one by one
    int pending = 0;                    ///< sends and receives of this round that are not done
  };
  struct Active {
    const CollectivePlan* plan = nullptr;
    const std::vector<int>* hosts = nullptr;
    std::uint64_t id = 0;
    std::size_t step = 0;                 ///< flow level: current step
    std::int64_t pending = 0;             ///< flow level: flows under way; message level: ranks not done
    std::vector<RankProgress> ranks;      ///< message level
    std::vector<std::uint32_t> round_of;  ///< message level: unrolled round -> index into the schedule
    std::vector<std::vector<std::int32_t>> sent, received;  ///< by explicit round and rank: message index or -1
  };
  /// What a token says besides whose it is.
  struct Event {
    bool reduction = false;  ///< the receiver has combined the message with its own data
    std::uint32_t slot = 0;
    std::uint32_t round = 0;
    std::uint32_t message = 0;
  };
  static std::uint64_t pack(std::uint16_t tag, Event event);
  static Event unpack(std::uint64_t token);

  std::uint64_t end(std::uint32_t slot);

  void count(const Active& active, const FlowStep& step);
  void start_step(std::uint32_t slot);
  std::uint64_t start_flows(std::uint32_t slot);

  void start_messages(std::uint32_t slot);
  void enter_next_round(std::uint32_t slot, int rank);
  void start_message(std::uint32_t slot, std::uint32_t round, std::uint32_t index);
  void part_done(std::uint32_t slot, int rank);
  Message message_at(const Active& active, std::uint32_t round, std::uint32_t index) const;
  /// Index of the message that the rank sends or receives in a round, or -1.
  std::int32_t send_of(const Active& active, std::uint32_t round, int rank) const;
  std::int32_t receive_of(const Active& active, std::uint32_t round, int rank) const;

  SimEngine& engine_;
  TrafficCounter& traffic_;
  std::uint16_t timer_tag_, flow_tag_;
  const FlowSymmetry* symmetry_;  ///< null: every message is one of its own
  std::vector<std::unique_ptr<Active>> active_;
  std::vector<std::uint32_t> free_;
};

}  // namespace epocast
