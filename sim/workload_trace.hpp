#pragma once
// The layer-wise trace that strategies replay: how long each pass of each layer takes on each kind of device at one
// batch size, and how many bytes it hands to others.

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/device_time.hpp"
#include "sim/model.hpp"
#include "sim/precision.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// Times of one layer for one batch.
template <class Time>
struct BasicPassTimes {
  Time forward;
  Time backward_data;
  Time backward_weights;
  Time update;          ///< applying the gradient to all of the layer's parameters
  Time recompute = {};  ///< a second forward pass, before backward, if it is in a segment (sim/recompute.hpp)
  Time once = {};       ///< the part of `forward` that a second forward pass does not take again
  Time copy_out = {};   ///< the part of `forward` that only waits for the link to the host
  Time copy_in = {};    ///< the part of `backward_data` that does

  Time forward_again() const { return forward - once; }
  Time backward() const { return recompute + backward_data + backward_weights; }
  Time total() const { return forward + backward() + update; }

  operator BasicPassTimes<DeviceTime>() const  // NOLINT(google-explicit-constructor)
      requires std::same_as<Time, Seconds> {
    return {forward, backward_data, backward_weights, update, recompute, once, copy_out, copy_in};
  }
};

using PassTimes = BasicPassTimes<Seconds>;      ///< on one device
using LayerTimes = BasicPassTimes<DeviceTime>;  ///< on each kind of device

/// Each pass's time of its own; `of` gives it: of(&LayerTimes::forward), ...
template <class Of>
LayerTimes each_pass(Of of) {
  return {of(&LayerTimes::forward),  of(&LayerTimes::backward_data), of(&LayerTimes::backward_weights),
          of(&LayerTimes::update),   of(&LayerTimes::recompute),     of(&LayerTimes::once),
          of(&LayerTimes::copy_out), of(&LayerTimes::copy_in)};
}

/// One gradient (= one parameter tensor) in bytes.
struct GradientTensor {
  std::string name;
  Bytes bytes;
};

/// One layer of the trace.
struct LayerTrace {
  std::string name;
  LayerKind kind = LayerKind::input;
  std::vector<int> inputs;  ///< indices into WorkloadTrace::layers
  LayerTimes times;
  std::vector<GradientTensor> gradients;
  Bytes parameters;        ///< all of the layer's parameters that are trained
  Bytes output;            ///< the activation of the whole batch that the next layer reads
  Bytes kept_activations;  ///< what must stay in memory until this layer's backward pass
  Flop forward_flop;       ///< of the whole batch
  Flop backward_flop;      ///< of the whole batch, both gradients

  // For the memory timeline (sim/memory_timeline.hpp); see Layer for the first four.
  bool backward_reads_input = false;
  bool backward_reads_output = false;
  bool needs_gradient = false;
  int stored_in = -1;
  Bytes inner = {};       ///< made on the way and kept for backward: the part of kept_activations that is not output
  Bytes workspace = {};   ///< scratch memory of the layer's kernels while they run
  Bytes recomputed = {};  ///< what its second forward pass makes and keeps for backward, beside kept_activations
  Bytes frozen = {};      ///< parameters that training leaves as they are
  Bytes offloaded = {};   ///< kept for backward in the host's memory; not part of kept_activations
  int segment = -1;  ///< of layers that forget activations and compute them again, one after the other; -1: keeps them

  Bytes gradient_bytes() const;  ///< of all gradients as they travel
};

/// How a device reaches the activations that it keeps in its host's memory.
struct HostLink {
  BytesPerSecond rate;   ///< each way; 0: all activations are on the device
  Bytes buffer = {};     ///< of all passes under way together: what need not have left the device
  bool overlaps = true;  ///< copies go on beside computing
  bool any() const { return rate.value > 0; }
};

/// A whole network at one batch size.
struct WorkloadTrace {
  std::string model;
  std::int64_t batch = 0;
  std::vector<LayerTrace> layers;  ///< same order and indices as Model::layers; the input layer takes no time
  Precision precision = Precision::fp32;
  bool state_on_host = false;  ///< the optimizer's state is in the host's memory, and so are updates
  HostLink host_link = {};     ///< over which activations are offloaded
  /// Of offloaded activations, what is on the device where it holds the network and has one pass under way. The times
  /// of layers wait for the link as they do there.
  Bytes staging = {};

  Bytes parameter_bytes() const;  ///< of those that are trained
  Bytes gradient_bytes() const;   ///< of all gradients as they travel
  /// Bytes of one gradient's value as it travels; a weight's in a network without parameters that are trained.
  double gradient_value_bytes() const;
  Bytes kept_activation_bytes() const;
  bool goes_back() const;           ///< whether something is trained, so that there are backward passes
  DeviceTime compute_time() const;  ///< sum over layers and passes
};

/// Makes traces; strategies call it once per micro-batch size that they need.
class TraceSource {
 public:
  using OnDevice = std::function<WorkloadTrace(std::int64_t batch, DeviceId device)>;

  TraceSource() = default;
  /// From what makes the trace on one device; `workers` says which of the workers are alike.
  TraceSource(std::shared_ptr<const DeviceKinds> workers, OnDevice on_device)
      : workers_(std::move(workers)), on_device_(std::move(on_device)) {}
  /// Where the same holds on all devices. Implicit: `make` is such a source.
  template <std::invocable<std::int64_t> Make>
  requires(!std::same_as<std::remove_cvref_t<Make>, TraceSource>)
      TraceSource(Make make)  // NOLINT(google-explicit-constructor)
      : on_device_([make = std::move(make)](std::int64_t batch, DeviceId /*device*/) { return make(batch); }) {}

  /// A batch of so many samples on each worker.
  WorkloadTrace operator()(std::int64_t batch) const { return (*this)(batch, workers_); }
  /// The same on other devices, such as parameter servers.
  WorkloadTrace operator()(std::int64_t batch, const std::shared_ptr<const DeviceKinds>& devices) const;

 private:
  std::shared_ptr<const DeviceKinds> workers_;  ///< null: all are alike
  OnDevice on_device_;
};

}  // namespace epocast
