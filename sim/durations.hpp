#pragma once
// How long computations and messages take, with all that can make them slower.

#include <optional>

#include "sim/compiled_graph.hpp"
#include "sim/disturbance.hpp"
#include "sim/execution.hpp"
#include "sim/noise_draws.hpp"

namespace epocast {

/// Slowdowns, noise and disturbances of the devices of one execution.
class Durations {
 public:
  Durations(const CompiledGraph& graph, const ExecutionOptions& options, std::size_t devices, double start);

  /// Time of a computation [s] but for noise and disturbances. REQUIRES: the task is a computation.
  double usual(Instance i) const;
  /// The same with noise: its work, s at full pace.
  double work(Instance i, std::int64_t iteration) const;
  /// When so much work of the instance is done, with nothing but that from now on [s]; infinite if never.
  double end_of(Instance i, double now, double work) const;
  /// How much work is done on the instance's device from one date to another.
  double work_between(Instance i, double from, double until) const;
  /// When communication starts.
  struct Departure {
    double date = 0;       ///< infinite if never
    DeviceId held_by = 0;  ///< who stands still until then
  };
  /// Of a message or collective whose turn is now: as soon as none of those who send stands still. Throws
  /// SimulationError if they do so in turn, and never work at once.
  Departure departure(Instance i, double now) const;
  /// How large a message is as far as its time is concerned [B].
  double effective_bytes(Instance i, std::int64_t iteration, Bytes bytes) const;

  /// The device that does the work of the instance: its queue's, or else its rank's.
  DeviceId worker(Instance i) const;
  /// Since when the device stands still for ever [s from the start of the phase]. REQUIRES: it does.
  double stopped(DeviceId device) const;

  /// Whether nothing changes or varies at or after `now`.
  bool calm(double now) const { return training_time(now) >= calm_from_; }
  /// Whether enough has been seen of what changes for an average.
  bool representative(double now) const { return training_time(now) >= representative_from_; }

 private:
  std::int64_t step_of(const Task& task, std::int64_t iteration) const;
  double step_factor(Instance i, std::int64_t iteration) const;
  template <class Visit>
  void for_each_sender(Instance i, Visit visit) const;
  double resumes(DeviceId device, double now) const;
  double training_time(double now) const { return now - start_ + elapsed_; }
  /// Whether its queue does not care what becomes of the device.
  bool steady(Instance i) const;

  const CompiledGraph& graph_;
  const ExecutionOptions& options_;
  std::optional<NoiseDraws> compute_noise_;  ///< unless computations vary as was measured, or not at all
  Pace pace_;
  double start_, elapsed_;
  double calm_from_ = 0, representative_from_ = 0;  ///< training time
};

}  // namespace epocast
