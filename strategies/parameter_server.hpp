#pragma once
// Parameter servers: workers push gradients to servers, which update the parameters, and pull the new ones.
//
// Scope: synchronous (each update waits for the gradients of all workers), asynchronous (each gradient is applied as it
// comes; which worker is served first emerges from the servers' queues and the network), stale synchronous (Ho et al.
// 2013: the same, but no worker is more than `staleness` steps ahead of the slowest), or synchronous with backup
// workers (Chen et al. 2016: each update takes the first n - b gradients; later ones are dropped). Whole parts of the
// model or layer by layer, the latter overlapping backward and the next forward pass (Li et al. 2014; Abadi et al.
// 2016). Servers, copies and service times: strategies/server_options.hpp. Validation: tests/conformance,
// tests/unit/parameter_server_test.cpp, experiments/reproduce/eserol2019.

#include <optional>

#include "sim/strategy.hpp"
#include "strategies/server_options.hpp"

namespace epocast {

class ParameterServer final : public Strategy {
 public:
  explicit ParameterServer(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

  enum class Mode { sync, async, stale, backup };

 private:
  void check(const StrategyContext& context) const;

  ConfigNode options_;
  Mode mode_;
  std::optional<int> staleness_;  ///< bound in steps; absent: none
  int backup_;                    ///< workers whose gradients an update does not wait for
  MessageGranularity granularity_;
  bool overlap_;
  ServerOptions servers_;
};

}  // namespace epocast
