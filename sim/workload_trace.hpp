#pragma once
// The layer-wise trace that strategies replay: how long each pass of each layer takes on one device at one batch size,
// and how many bytes it hands to others.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/model.hpp"
#include "sim/precision.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// Times of one layer on one device for one batch.
struct PassTimes {
  Seconds forward;
  Seconds backward_data;
  Seconds backward_weights;
  Seconds update;          ///< applying the gradient to all of the layer's parameters
  Seconds recompute = {};  ///< a second forward pass, before backward, if it is in a segment (sim/recompute.hpp)

  Seconds backward() const { return recompute + backward_data + backward_weights; }
  Seconds total() const { return forward + backward() + update; }
};

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
  PassTimes times;
  std::vector<GradientTensor> gradients;
  Bytes parameters;        ///< all of the layer's parameters
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
  int segment = -1;  ///< of layers that forget activations and compute them again, one after the other; -1: keeps them
};

/// A whole network at one batch size on one kind of device.
struct WorkloadTrace {
  std::string model;
  std::int64_t batch = 0;
  std::vector<LayerTrace> layers;  ///< same order and indices as Model::layers; the input layer takes no time
  Precision precision = Precision::fp32;

  Bytes parameter_bytes() const;
  Bytes kept_activation_bytes() const;
  Seconds compute_time() const;  ///< sum over layers and passes
};

/// Makes the trace for a batch of so many samples; strategies call it once per micro-batch size they need.
using TraceSource = std::function<WorkloadTrace(std::int64_t batch)>;

}  // namespace epocast
