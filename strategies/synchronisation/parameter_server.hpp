#pragma once
// Parameter servers: workers push gradients to servers, which update the parameters, and pull the new ones.
//
// Scope: synchronous (each update waits for the gradients of all replicas), asynchronous (each gradient is applied as
// it comes; which worker is served first emerges from the servers' queues and the network), stale synchronous (Ho et
// al. 2013: the same, but no worker is more than `staleness` steps ahead of the slowest), or synchronous with backup
// workers (Chen et al. 2016: each update takes the first n - b gradients; later ones are dropped). Whole parts of the
// model or layer by layer, the latter overlapping backward and the next forward pass (Li et al. 2014; Abadi et al.
// 2016). Whether pulls wait for the step to end (TensorFlow 1) is an option, and so is that the devices of a node sum
// their gradients first and then push and pull a share each (TensorFlow's distributed_replicated, MXNet's
// dist_device_sync: which device sums what is spread over all). Each stage has servers of its own; where devices share
// a replica's layers, a layer's server holds all its parts, each of which travels by itself. Servers, copies and
// service times: strategies/synchronisation/server_options.hpp. Limits: versions are not counted where devices share
// layers; backup workers are replicas of one device each; nodes sum first in mode sync only, uncompressed. Validation:
// tests/conformance, tests/unit/parameter_server_test.cpp, experiments/reproduce/eserol2019.

#include <optional>

#include "strategies/step/synchronisation.hpp"
#include "strategies/synchronisation/server_options.hpp"

namespace epocast {

class ParameterServer final : public Synchronisation {
 public:
  explicit ParameterServer(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int /*replicas*/) const override {
    return {.data_only = settings_.mode != Mode::sync, .own_versions = true};
  }
  static EntryInfo info();

  enum class Mode { sync, async, stale, backup };
  /// What hides behind passes: pushes behind the backward pass, and pulls behind the forward pass, piece by piece as
  /// these are updated; with `pushes`, pulls wait for the step to end; with `step`, the next step for all pulls.
  enum class Overlap { none, pushes, step, both };
  struct Settings {
    Mode mode = Mode::sync;
    std::optional<int> staleness = 0;  ///< bound in steps; absent: none
    int backup = 0;                    ///< workers whose gradients an update does not wait for
    MessageGranularity granularity = MessageGranularity::layer;
    Overlap overlap = Overlap::both;
    bool by_node = false;  ///< devices of a node sum their gradients first, and share what they push and pull
    ServerOptions servers;
  };

 private:
  void check(const ParameterPlace& place) const;

  ConfigNode options_;
  Settings settings_;
};

}  // namespace epocast
