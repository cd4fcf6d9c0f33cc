#pragma once
// Parameter servers: workers push gradients to servers, which update the parameters, and pull the new ones.
//
// Scope: synchronous (each update waits for the gradients of all workers) and asynchronous (each gradient is applied as
// it comes; which worker is served first emerges from the servers' queues and the network); one or several servers, on
// hosts of their own or on the workers'; whole parts of the model or layer by layer, the latter overlapping backward
// and the next forward pass (Li et al. 2014; Abadi et al. 2016). Limits: no bounded staleness, no backup workers; a
// server's arithmetic is memory-bound and does not slow down a worker on the same host. Validation: tests/conformance,
// tests/unit/parameter_server_test.cpp.

#include "sim/strategy.hpp"

namespace epocast {

class ParameterServer final : public Strategy {
 public:
  explicit ParameterServer(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

  enum class Mode { sync, async };
  enum class Placement { greedy, round_robin, even };
  enum class Location { dedicated, colocated };
  enum class Granularity { layer, model };

 private:
  std::vector<DeviceId> server_devices(const StrategyContext& context) const;

  ConfigNode options_;
  Mode mode_;
  int servers_;
  Placement placement_;
  Location location_;
  Granularity granularity_;
};

}  // namespace epocast
