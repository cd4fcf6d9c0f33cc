#pragma once
// What frameworks and communication libraries cost beside kernels and links.
//
// clang-format off
//     stack: pytorch_ddp              # costmodels/stacks/pytorch_ddp.yaml
//     description: ..
//     source: where its numbers come from
//     strategies:                     # defaults of options that a study leaves out
//       data_parallel: {first_bucket: 1 MiB, update: after_all}
//     gradients: fp32                 # precision in which they travel: fp32, or as_weights
//     copies: 4                       # accesses of device memory for each byte of a collective: into a bucket, and back
//     accumulation: 12                # bytes of device memory's traffic for each parameter, to add a micro-batch's gradients
//                                     # to those of the ones before
//     update_traffic: {fp16: 30}      # by precision: bytes of memory traffic for each parameter and update, beside the optimizer's
//     processor_rate: 2 GB/s          # at which one core would move bytes through the network's software if it did
//                                     # nothing else; taken from computation while they move
//     handshake: 1                    # latencies that each message of a collective waits for its receiver's notice
//     window: 2 MB                    # bytes of such a message before it waits for another notice
//     collective_overhead: 30 us      # each collective: its launch, and waiting for ranks to wake up
//     interference: 0.3               # share of its speed that computation loses while the device communicates
//     spread: 0.02                    # coefficient of variation of a worker's step
//     scale: 1                        # factor on copies, processor time, handshake, collective_overhead, interference, spread
//     launch: 5 us                    # what the host needs to start a kernel, where a study does not say compute.launch
//     loss: fused                     # default of compute.loss, as those of attention, gelu, batch_norm, autocast and metrics
//     update_accesses: foreach        # default of optimizer.accesses
//     input: {per_worker: 800, per_node: 4000}   # samples/s
//     ranges: {spread: [0, 0.05]}     # in which the true value of a key lies in nine of ten cases
//     unexplained: 0.08               # share of its time by which a run is off for other reasons, in as many
//     unexplained_kernels: 0.4        # the same of a step that is a sum of kernels
// clang-format on
//
// Scope and limits: all is off in the stack `ideal`. One worker alone has no copies, no exchange and nobody to wait
// for: it knows `launch`, `input`, `accumulation` and `update_traffic` only. Gradients are added up at the end of each
// layer's backward pass, from a step's second micro-batch on; each of m takes (m - 1) / m of the time. A synchronous
// step waits for the slowest of n draws; here it takes the expected maximum of n normal draws in every step (order
// statistics; exact for n = 2: 1 / sqrt(pi) = 0.564), so runs stay periodic and workers alike.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/collective.hpp"
#include "sim/config.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

inline constexpr const char* kIdealStack = "ideal";

class SoftwareStack {
 public:
  /// The ideal one.
  SoftwareStack() = default;
  /// Throws ConfigError for anything that is not as described above.
  explicit SoftwareStack(const ConfigNode& root);

  const std::string& name() const { return name_; }
  /// Of collectives, where a study names no algorithm.
  CollectiveAlgorithm collectives() const { return collectives_; }
  Seconds collective_overhead() const { return collective_overhead_; }
  double copies() const { return copies_; }
  double processor_time() const { return processor_time_; }  ///< s of one core per byte
  double handshake() const { return handshake_; }            ///< latencies
  double window() const { return window_; }                  ///< bytes; 0: any number
  double interference() const { return interference_; }
  double spread() const { return spread_; }
  /// s that copies take for each byte on a device.
  double copy_time(const Device& device) const;
  bool accumulates() const { return accumulation_ > 0; }
  /// Adds to each layer's backward pass the time that adding up its gradients takes, of one of so many micro-batches of
  /// a step. `per_byte`: s for each byte of memory traffic.
  void accumulate(WorkloadTrace& trace, int micro_batches, const DeviceTime& per_byte) const;
  /// Adds to updates what frameworks do to gradients and weights of a precision beside the optimizer's arithmetic, on a
  /// device where a byte of memory traffic takes so long. For steps whose time was not measured.
  void add_update_traffic(WorkloadTrace& trace, Seconds per_byte) const;
  /// s for each byte of memory traffic of operations that only read and write, on a device.
  static Seconds streaming_time(const Device& device);
  /// Samples/s that can be fed to a worker that shares its node with so many in all; none: any number.
  std::optional<double> input_rate(std::int64_t workers_on_node) const;

  /// Values of strategy options that a study leaves out.
  struct Default {
    std::string option;
    ConfigNode value;
  };
  std::vector<Default> defaults(const std::string& strategy) const;
  /// Options of the cost model `fitted` that say which kernels a framework runs, where a study leaves them out.
  const std::vector<Default>& kernels() const { return kernels_; }
  /// `optimizer.accesses`, likewise.
  const std::optional<ConfigNode>& update_accesses() const { return update_accesses_; }
  /// What the host needs to start a kernel of a forward pass, where a study does not say it.
  Seconds launch() const { return launch_; }

  /// Changes the trace of one of so many workers. `in_step`: whether the workers wait for each other in every step.
  void apply(WorkloadTrace& trace, std::int64_t workers, bool in_step) const;

  /// The mechanisms that are on, each with the stack that lacks it: for finding out what each costs.
  std::vector<std::pair<std::string, SoftwareStack>> without_each() const;
  /// A key whose value is uncertain, and the stacks with the ends of its range instead.
  struct Ends {
    std::string key;
    std::shared_ptr<const SoftwareStack> low, high;
  };
  const std::vector<Ends>& ends() const { return ends_; }
  double unexplained() const { return unexplained_; }  ///< share of a forecast
  /// The same of a step that is a sum of kernels, as none was measured as a whole.
  double unexplained_kernels() const { return unexplained_kernels_; }

 private:
  void read_ranges(const ConfigNode& ranges, const ConfigNode& root);
  /// Multiplies all that several workers lose.
  void scale(double factor);

  std::string name_ = kIdealStack;
  std::vector<std::pair<std::string, std::vector<Default>>> strategies_;
  CollectiveAlgorithm collectives_ = CollectiveAlgorithm::automatic;
  bool fp32_gradients_ = false;
  double copies_ = 0;
  double accumulation_ = 0;                     ///< bytes per parameter
  std::map<Precision, double> update_traffic_;  ///< bytes per parameter
  double processor_time_ = 0;                   ///< s of one core per byte
  double handshake_ = 0;
  double window_ = 0;  ///< bytes; 0: any number
  Seconds collective_overhead_;
  double interference_ = 0;
  double spread_ = 0;
  std::vector<Default> kernels_;
  std::optional<ConfigNode> update_accesses_;
  Seconds launch_;
  double worker_input_ = 0, node_input_ = 0;  ///< samples/s; 0: any number
  std::vector<Ends> ends_;
  double unexplained_ = 0, unexplained_kernels_ = 0;
};

/// The stack that `value` names: `pytorch_ddp` for DATA_DIR/costmodels/stacks/pytorch_ddp.yaml, `ideal`, or a path. A
/// map changes one: {name: pytorch_ddp, spread: 0}.
SoftwareStack load_stack(const ConfigNode& value, const std::filesystem::path& data_dir);

/// Expected maximum of n independent standard normal variables. REQUIRES: n >= 1.
double expected_maximum(std::int64_t n);

}  // namespace epocast
