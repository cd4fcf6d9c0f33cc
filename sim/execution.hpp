#pragma once
// What goes into a simulation of one phase of training, and what comes out.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/activity.hpp"
#include "sim/cluster.hpp"
#include "sim/disturbance.hpp"
#include "sim/graph_limits.hpp"
#include "sim/noise.hpp"
#include "sim/quantity.hpp"
#include "sim/staleness.hpp"
#include "sim/steady_state.hpp"
#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"

namespace epocast {

struct ShortenedStep;

/// Who does how many steps.
enum class Shards {
  fixed,     ///< every worker its own: `iterations` each
  stealing,  ///< a common pool of workers x iterations steps: who has finished one takes the next
};

/// What communication costs beside the network.
struct CommunicationCosts {
  double overhead = 0;        ///< s before the first message of each collective that is not measured
  double copy_time = 0;       ///< s per byte of its vector, on top
  double interference = 0;    ///< share of its speed that computation loses while its device communicates
  double processor_time = 0;  ///< s of the device's time per byte that it sends or receives, taken from computation
  double handshake = 0;       ///< latencies that each message of a collective waits for its receiver's notice
  double window = 0;          ///< bytes of such a message before it waits for another; 0: any number

  bool slows_computation() const { return interference > 0 || processor_time > 0; }
};

struct ExecutionOptions {
  std::int64_t iterations = 1;  ///< steps of every worker in this phase; with stealing, on average
  Shards shards = Shards::fixed;
  bool exact = false;  ///< simulate them all
  bool fold = true;    ///< simulate interchangeable ranks once, where that gives the same result
  NoiseModel noise = {};
  std::vector<double> slowdown = {};           ///< factor on compute times by device; empty: all 1
  std::vector<Disturbance> slow_devices = {};  ///< compute slower for a while, or stand still: send nothing new either
  std::vector<Disturbance> slow_links = {};    ///< of these devices: all bytes they send or receive take longer
  CommunicationCosts costs = {};
  double elapsed = 0;                    ///< s of training before this phase: what disturbances' dates count from
  bool share_single_links = true;        ///< false: leave flows of a single bottleneck to SimGrid, too
  std::int64_t sample_iterations = 200;  ///< simulated when noise makes extrapolation an estimate
  std::int64_t patience =
      1'000'000;  ///< task executions (but 100 iterations) before giving up on a period: an estimate then
  std::size_t most_executions = kMostExecutions;  ///< of tasks by ranks in a step: more are a SimulationError
  bool find_bound = true;                         ///< look for the cycle of dependencies that takes longest
  bool only_pace = false;       ///< end when the period is known: only `period` and what is per iteration is filled in
  bool record_waiting = false;  ///< find out who waits for whom at joins
  bool record_traffic = false;  ///< find out which device sends how much to which
  bool record_ends = false;     ///< say when in the last iteration each task ended
  const ShortenedStep* shortened = nullptr;  ///< with record_ends: tell of the whole step, if this one is folded and
                                             ///< repeats itself; outlives the run
  bool record_own_work = false;  ///< say how long devices work for micro-batches at least, if the run is folded
  bool record_timeline = false;
  std::size_t max_intervals = 2'000'000;      ///< of the recorded timeline
  IntervalSink* intervals = nullptr;          ///< told of all of them; outlives the run
  std::function<void(double)> progress = {};  ///< told after each iteration what share of all is done, 0..1, at least
};

/// Averages over the simulated workers, per iteration of the steady state (or of the observed window).
struct StepMetrics {
  double compute = 0;                ///< s per iteration a worker computes
  double communication = 0;          ///< s per iteration a worker communicates
  double exposed_communication = 0;  ///< s per iteration a worker communicates without computing
  double bytes = 0;                  ///< B per iteration over all messages
  double max_link_utilization = 0;   ///< of the busiest link, 0..1
  std::string busiest_link;
  std::optional<double> mean_staleness;       ///< versions
  std::optional<std::int64_t> max_staleness;  ///< versions

  double overlap_ratio() const { return communication > 0 ? 1 - exposed_communication / communication : 0; }
};

/// Totals over everything that was simulated; for conservation checks.
struct SimulatedTotals {
  double makespan = 0;                          ///< s
  std::vector<ActivityTimes> activity;          ///< by device
  std::vector<double> sent, received, on_link;  ///< B by host, host, link
};

/// What one worker (a rank of the widest group) did in all that was simulated.
struct WorkerReport {
  DeviceId device = 0;
  std::int64_t steps = 0;                     ///< iterations that it completed
  std::int64_t skipped = 0;                   ///< iterations that it skipped as obsolete; not among its steps
  std::int64_t dropped = 0;                   ///< contributions that came too late for the quorum of a join
  double ended = 0;                           ///< s from the start until its last task ended
  std::optional<double> stopped;              ///< s from the start: since when it stands still for ever
  std::optional<double> mean_staleness;       ///< versions, of its own writes
  std::optional<std::int64_t> max_staleness;  ///< versions
  // With record_waiting; see BarrierAccounts.
  double lost = 0;             ///< s in which it did nothing but wait for others at joins
  double cost_to_others = 0;   ///< s that others waited for it, summed over them
  std::int64_t came_last = 0;  ///< how often a join waited for it

  double steps_per_s() const { return ended > 0 ? static_cast<double>(steps) / ended : 0; }
};

/// What one queue with the role of a server did in all that was simulated.
struct ServerReport {
  std::string queue;
  double utilization = 0;   ///< share of the time in which it was busy, 0..1; the mean over its devices
  std::int64_t served = 0;  ///< tasks
};

/// What one device sends to another.
struct DeviceTraffic {
  DeviceId from = 0, to = 0;
  double bytes = 0;  ///< per iteration
};

/// The longest cycle of the graph: no execution of it can have a shorter period.
struct CycleBound {
  double seconds = 0;                ///< per iteration
  std::vector<std::uint32_t> tasks;  ///< on the cycle, in order
  std::vector<int> lags;             ///< of the edge that leaves each of them
  std::vector<double> durations;     ///< s of each on an idle network
};

struct ExecutionResult {
  double total = 0;           ///< s for all iterations
  double iteration = 0;       ///< s per iteration in the steady state
  double iteration_ci95 = 0;  ///< half width of the 95 % confidence interval of `iteration`; 0 if not an estimate
  std::int64_t iterations_simulated = 0;
  bool exact = false;  ///< total is what simulating all iterations gives
  std::optional<Period> period;
  bool folded = false;
  StepMetrics metrics;
  SimulatedTotals totals;
  std::vector<WorkerReport> workers;   ///< by rank; rank 0 alone if folded
  std::vector<ServerReport> servers;   ///< by queue
  StalenessReport staleness;           ///< of all writes
  std::vector<DeviceTraffic> traffic;  ///< with record_traffic: of all pairs that communicate, in order
  std::optional<CycleBound> bound;     ///< absent under noise, where a quorum or a common pool makes it no bound, and
                                       ///< if it was not asked for
  std::vector<std::optional<CollectiveAlgorithm>> algorithms;  ///< by task: what a collective took, unless measured
  std::vector<std::string> remarks;  ///< what else than asked for was simulated, a sentence each
  std::vector<std::string> doubts;   ///< why the result cannot be trusted, a sentence each; then it is not exact
  Timeline timeline;
  std::vector<double> ends;      ///< with record_ends, by task and team, or by task if folded [s from the start]
  int repeats_after = 0;         ///< with `shortened`, micro-batches: 0 if it was not seen to
  bool tells_whole = false;      ///< of the step with all micro-batches, but for ends and bound
  std::vector<double> own_work;  ///< with record_own_work, by device: the longest chain of what it does itself [s]
};

}  // namespace epocast
