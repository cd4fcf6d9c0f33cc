#pragma once
// Batch schedules by rule: Lee 2020, Algorithm 3.

#include <cstdint>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

struct PhaseSettings;

/// The batch doubles every so many epochs, from one size to another. As many workers train as the batch can be divided
/// over; the others are idle.
struct BatchDoubling {
  std::int64_t from = 1, to = 1;  ///< samples of all workers
  std::int64_t every = 0;   ///< epochs; 0: as many as learning needs until theta (eq. 5.4) changes by less than 10 %
  std::int64_t epochs = 1;  ///< in all
  std::vector<DeviceId> workers = {};
  ConfigNode place;

  bool adaptive() const { return every == 0; }
  /// The phases if the batch doubles every `interval` epochs.
  std::vector<PhaseSettings> phases(std::int64_t interval, std::int64_t samples, bool drop_last) const;
};

/// `schedule: {rule: doubling, from: 64, to: 256, every: 10, epochs: 100}`. Throws ConfigError.
BatchDoubling read_batch_doubling(const ConfigNode& node, std::vector<DeviceId> workers, std::int64_t samples);

/// The most of `workers` that a batch can be divided over evenly.
std::int64_t active_workers(std::int64_t batch, std::int64_t workers);

}  // namespace epocast
