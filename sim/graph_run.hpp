#pragma once
// One run of one graph: what execute() is made of. How instances live is in graph_run.cpp, what is said of them
// afterwards in graph_run_report.cpp.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/barrier_accounts.hpp"
#include "sim/collectives/runner.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"
#include "sim/deadlock.hpp"
#include "sim/disturbed_links.hpp"
#include "sim/durations.hpp"
#include "sim/execution.hpp"
#include "sim/fusion.hpp"
#include "sim/interference.hpp"
#include "sim/network_plan.hpp"
#include "sim/obsolescence.hpp"
#include "sim/queue_slots.hpp"
#include "sim/readiness.hpp"
#include "sim/server_accounts.hpp"
#include "sim/service_order.hpp"
#include "sim/staleness.hpp"
#include "sim/step_clock.hpp"
#include "sim/step_observer.hpp"
#include "sim/step_pool.hpp"
#include "sim/task_activity.hpp"
#include "sim/timed_instances.hpp"
#include "sim/traffic.hpp"
#include "sim/worker_report.hpp"

namespace epocast {

/// Ends a run of which no more is asked for than its period.
struct PaceIsKnown {};

/// One run of one graph. The token game decides what is ready, queues decide who goes first, the engine tells when
/// things end; everything else here is bookkeeping.
class GraphRun final : SimEngine::Listener {
 public:
  GraphRun(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine, const NetworkPlan& network,
           const ExecutionOptions& options, bool folded);

  ExecutionResult run();

 private:
  /// A collective whose first message is still to come.
  struct StartingCollective {
    std::span<const Instance> fused = {};  ///< all that run as one, where several may
    const CollectivePlan* plan = nullptr;
    double copying = 0;  ///< s
  };

  void on_timer(std::uint64_t token) override;
  void on_flow_done(std::uint64_t token) override;
  std::uint64_t order(std::uint64_t token, bool is_flow) const override;

  void start_work(Instance i);
  void start_collective(Instance i, StartingCollective starting, double bytes);
  void copy_for_collective(Instance i, const StartingCollective& starting);
  void send_collective(Instance i, const StartingCollective& starting);
  double overhead(const Collective& collective, double bytes) const;
  double processor_work(Instance i) const;
  bool takes_kernels(Instance i) const;
  CommunicationLoad load_of(Instance i) const;
  double processor_wait(Instance i) const;
  void note_communication(Instance i, bool begins);
  void move(Instance computation, double date);
  void settle(DeviceId device, double date);
  void call_fusion(Instance i);
  void start_fused(Instance i);
  void offer(Instance i);
  void begin(Instance i);
  void note_beginning(Instance i);
  void finish(Instance i);
  void finish_instant();
  void finish_collective(std::uint64_t id);
  void observe(Instance i, std::int64_t iteration, bool happened);
  bool starts_over() const;
  bool sample_is_large_enough(std::int64_t iterations) const;
  void iteration_ended(std::int64_t completed);
  bool is_obsolete(Instance i);
  WorkerSources worker_sources() const;
  void check_all_ended() const;
  std::int64_t iteration_of(Instance i) const { return std::int64_t{state(i).started} - 1; }
  InstanceState& state(Instance i) { return states_[compiled_.instance_id(i)]; }
  const InstanceState& state(Instance i) const { return states_[compiled_.instance_id(i)]; }
  std::vector<std::uint32_t> started() const;
  double iterations_done() const;
  bool paces_differ(double makespan) const;
  void measure_pace(ExecutionResult& result) const;
  void measure_traffic(ExecutionResult& result) const;
  std::optional<StepGrowth> left_out(ExecutionResult& result) const;
  bool reaches_into(double since, double until) const;
  void add(const StepGrowth& more);
  std::vector<double> own_work() const;
  double usual_duration(const Task& task, Instance i) const;
  bool bound_from_one_rank() const;
  CycleBound bound() const;

  const CyclicTaskGraph& graph_;
  const Cluster& cluster_;
  SimEngine& engine_;
  const NetworkPlan& network_;
  const ExecutionOptions& options_;
  CompiledGraph compiled_;
  Readiness readiness_;
  QueueSlots slots_;
  FusionQueues fusion_;
  TrafficCounter traffic_;
  CollectiveRunner collectives_;
  TaskActivity activity_;
  VersionCounter versions_;
  TimedInstances timed_;
  SteadyStateDetector detector_;
  StepObserver observer_;
  std::optional<StepClock> clock_;  ///< of a step that may stand for a longer one
  ServiceOrder service_order_;
  Durations durations_;
  std::vector<bool> computing_;  ///< by device
  Interference interference_;
  std::map<std::uint64_t, StartingCollective> starting_;  ///< by instance
  std::optional<BarrierAccounts> barriers_;
  std::optional<DisturbedLinks> disturbed_links_;

  double start_;
  double last_end_;  ///< of an instance; the clock goes on to dates that no longer hold
  StepPool pool_;
  VoidIterations obsolete_;
  std::int64_t max_started_ = 0;
  std::vector<InstanceState> states_;  ///< by instance
  std::vector<std::int64_t> dropped_;  ///< by rank
  ServerAccounts servers_;
  std::vector<StuckInstance> stuck_;  ///< on devices that stand still for ever
  std::int64_t executions_ = 0;       ///< ended
  std::int64_t calm_at_ = 0;          ///< iterations that had ended, or begun, when nothing changed any more
  bool calm_ = true;
  // When the period was found, if it is 1: how far all had come, and how long what is fused takes, by task.
  std::vector<ServiceCount> steady_;
  std::vector<double> steady_fused_;
  std::deque<Instance> instant_;  ///< ended at once, still to be finished
  std::optional<Period> period_;
  bool running_down_ = false;   ///< some instance has ended its last iteration
  bool pace_is_known_ = false;  ///< and no more is asked for
  StepMetrics metrics_;
  Timeline timeline_;
};

}  // namespace epocast
