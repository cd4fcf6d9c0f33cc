#pragma once
// How long the messages of a collective take on an idle network.

#include <vector>

#include "sim/collective.hpp"
#include "sim/collectives/group_network.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// What rounds that follow one another take where nothing else is under way. Latencies do not depend on the size of the
/// vector, the rest is in proportion to it.
struct IdleTime {
  double latency = 0;          ///< s: the largest latency of a round's messages, summed
  double transmission = 0;     ///< s on each round's busiest link, summed
  double reduction_bytes = 0;  ///< B: the most that a rank combines in a round, summed

  double seconds(double gamma) const { return latency + transmission + reduction_bytes * gamma; }
};

/// One repetition of a round: its flows side by side.
IdleTime idle_time(const Round& round, const std::vector<int>& hosts, const GroupNetwork& network, SimEngine& engine);

/// What a stream sends, as one round of one message for each pair of ranks, and how long that takes: all bytes at once,
/// after latencies along the way of one block.
struct Stream {
  IdleTime time;
  Round flows;
};

/// Each of the stream's rings runs once over every one of `rings`, if there are any. REQUIRES: schedule.is_stream.
Stream stream_of(const CollectiveSchedule& schedule, const std::vector<int>& hosts, const GroupNetwork& network,
                 std::vector<Ring> rings, SimEngine& engine);

/// All rounds of a schedule, each over all `rings` at once if there are any.
IdleTime idle_time(const CollectiveSchedule& schedule, const std::vector<int>& hosts, const GroupNetwork& network,
                   const std::vector<Ring>& rings, SimEngine& engine);

/// How long the rounds take message by message where none contend: every rank at its own pace.
double idle_time_of_messages(const CollectiveSchedule& schedule, const std::vector<int>& hosts, double gamma,
                             SimEngine& engine);

/// As idle_time_of_messages() on a star of equal links, where no two messages of a schedule share one.
double idle_time_on_star(const CollectiveSchedule& schedule, const AlphaBetaGamma& link);

/// s that the busiest link needs for all that crosses it: no order of the messages can be faster.
double time_of_busiest_link(const CollectiveSchedule& schedule, const std::vector<int>& hosts, SimEngine& engine);

/// A round in which every ring moves its share of each message, between the ranks that stand where the message's ranks
/// do. Each ring combines its share at its share of the rank's rate, which takes as long as all at the whole rate.
/// `own_ranks`: rank r of ring k is number k P + r, so that rings go on each at their own pace; else r's own number,
/// and what several rings send from one rank to another is one message.
Round on_rings(const Round& round, int ranks, const std::vector<Ring>& rings, bool own_ranks);

}  // namespace epocast
