#pragma once
// When training stands still: to be evaluated, and while a checkpoint is written. Read from a scenario's block
// `pauses`; docs/what-if.md.
//
// An evaluation is as many forward passes of the training's batch as its samples need, simulated with the same strategy
// and a network of which nothing is trained. A checkpoint of b bytes takes the longer of b / rate, of the storage, and
// b / (nodes node_rate), of the nodes' links to it: all of them write, each a share. With `background`, devices first
// copy their shares to the hosts, which write them while training goes on; the next checkpoint waits for that.

#include <cstdint>
#include <optional>

#include "sim/config.hpp"

namespace epocast {

/// How often: after so many of one of these.
struct PauseInterval {
  enum class Of { seconds, steps, epochs };
  Of of = Of::epochs;
  double count = 1;

  /// How often it is over in the first so many s, steps and epochs of training: a part of it has the difference of what
  /// there is up to its end and up to its beginning. At the end too, if it falls there.
  double times_in(double seconds, double steps, double epochs) const;
  /// The same with the part of an interval that has begun.
  double intervals_in(double seconds, double steps, double epochs) const;
};

struct EvaluationPause {
  PauseInterval every = {};
  std::int64_t samples = 0;
  ConfigNode place;
};

struct CheckpointPause {
  PauseInterval every = {};
  double rate = 0;                       ///< of the storage [B/s]
  std::optional<double> node_rate = {};  ///< of a node [B/s]
  bool background = false;
  double copy_rate = 0;  ///< of a device to its host [B/s]

  /// s that training stands still for one of `bytes` B, every `between` s, on so many nodes and devices.
  double seconds(double bytes, double nodes, double devices, double between) const;
};

struct Pauses {
  std::optional<EvaluationPause> evaluation;
  std::optional<CheckpointPause> checkpoint;
};

/// Reads `{evaluation: {every: 1 epoch, samples: 50000}, checkpoint: {every: 500 steps, rate: 10 GB/s}}`. Throws
/// ConfigError.
Pauses read_pauses(const ConfigNode& node);

}  // namespace epocast
