#pragma once
// A place whose program is a thread that computes, posts communications to another thread, and waits for them; the
// other one carries them out one at a time, first posted first served (Lee 2020, 3.3.4; Das et al. 2016).

#include <optional>
#include <string>

#include "strategies/step/synchronisation.hpp"

namespace epocast {

class PostedPlace : public PlaceSynchronisation {
 protected:
  /// `blocking`: every communication is waited for where it is posted, so that nothing overlaps.
  PostedPlace(const ParameterPlace& place, bool blocking)
      : place_(place),
        trace_(place.own_trace()),
        blocking_(blocking),
        communication_(place.communication("communication")) {}

  const WorkloadTrace& trace() const { return trace_; }  ///< of a micro-batch, other places' layers empty
  const ParameterPlace& place() const { return place_; }
  double replicas() const { return place_.replicas(); }
  /// Activations of the worker's batch that a layer reads, over all its inputs.
  Bytes input_bytes(std::size_t layer) const;
  /// What one device would take for all samples of a step.
  const WorkloadTrace& whole_batch();
  /// In which P parts of n/P bytes are added up: each is read once, the sum written.
  DeviceTime sum_time(Bytes bytes) const;

  /// The program computes. No task is made for a duration of 0.
  void compute(const DeviceTime& time, const char* operation, const std::string& layer);
  /// The program posts a collective of all replicas, by the study's algorithm if none is given, called after it and
  /// `what` it carries. No task is made for no bytes, or if a single replica has nobody to communicate with.
  std::optional<TaskId> post(CollectiveOp op, std::optional<CollectiveAlgorithm> algorithm, Bytes bytes,
                             const std::string& what, const std::string& layer, int micro_batch = -1);
  /// What the program does next waits for this one.
  void wait(std::optional<TaskId> posted) {
    if (posted) place_.stage.wait(*posted);
  }
  /// This point of the program, before a layer.
  std::size_t mark(const std::string& layer) { return place_.stage.mark(layer); }
  /// The next step waits at an earlier point for what this one has posted. Call it when programs are complete.
  void tie_to_next(std::optional<TaskId> posted, std::size_t mark);
  /// What update() returns. `in_pass`: updates were made in the backward pass.
  Lanes ended(bool in_pass = false);

 private:
  ParameterPlace place_;
  WorkloadTrace trace_;
  bool blocking_;
  QueueId communication_;
  std::optional<WorkloadTrace> whole_batch_;
  Lanes written_;  ///< last
};

}  // namespace epocast
