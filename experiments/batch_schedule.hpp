#pragma once
// Batch schedules by rule: Lee 2020, Algorithm 3.

#include <cstdint>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

struct PhaseSettings;

/// What workers do that a batch has no sample for.
enum class Spare {
  idle,
  replicate,  ///< the same as others, whose samples they have too (Lee 2020, 5.2.1)
};
/// `spare: idle` or `spare: replicate`. Throws ConfigError.
Spare read_spare(const ConfigNode& node);

/// Divides a batch that need not divide: one sample more for the first workers, and if there are fewer samples than
/// workers, only so many train, or all do. `phase` has its batch and all workers; sets who trains and, unless all have
/// equally many, their shares.
void share_unevenly(PhaseSettings& phase, Spare spare);

/// The batch doubles every so many epochs, from one size to another. Of workers that have a network each, as many train
/// as there are samples.
struct BatchDoubling {
  std::int64_t from = 1, to = 1;  ///< samples of all workers
  std::int64_t every = 0;   ///< epochs; 0: as many as learning needs until theta (eq. 5.4) changes by less than 10 %
  std::int64_t epochs = 1;  ///< in all
  std::vector<DeviceId> workers = {};
  std::int64_t replicas = 1;  ///< into how many shares they divide a batch
  Spare spare = Spare::idle;
  ConfigNode place;

  bool adaptive() const { return every == 0; }
  /// The phases if the batch doubles every `interval` epochs.
  std::vector<PhaseSettings> phases(std::int64_t interval, std::int64_t samples, bool drop_last) const;
};

/// `schedule: {rule: doubling, from: 64, to: 256, every: 10, epochs: 100}`. Throws ConfigError.
BatchDoubling read_batch_doubling(const ConfigNode& node, std::vector<DeviceId> workers, std::int64_t replicas,
                                  std::int64_t samples);

}  // namespace epocast
