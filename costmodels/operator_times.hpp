#pragma once
// How long each operation of an operator graph takes on one device.
//
// Products and convolutions, forward and backward, take what the fits of their kernels say (fitted.hpp); all others
// move data: an overhead and their bytes at 0.8 of the memory bandwidth, as `fitted` has it for layers. Shapes of
// products follow from the sizes of operands, result and FLOP: with a = m k, b = k n, c = m n values in each of `count`
// products, a b c = count^3 (m n k)^2 and FLOP = 2 count m n k. Nodes that do not run, views, and what moves
// less than kHostBytes (shape arithmetic, counters, group nodes: work of the host) take no time.
//
// Scope and limits: operations run one by one, as TensorFlow 1 runs them; a layer of several operations moves more data
// than the same layer fused, as `fitted` has it. anchor_to_layers() takes that back. Validation: docs/placement.md.

#include <vector>

#include "costmodels/compute_calibration.hpp"
#include "sim/operator_graph.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

/// By node [s]. `model` is what the graph was built from. Throws ConfigError if the calibration has no fit that a
/// product or convolution of the graph needs.
std::vector<double> operator_times(const OperatorGraph& graph, const Model& model,
                                   const ComputeCalibration& calibration);

/// Scales the times of each layer's nodes so that its forward pass, its backward pass and its update take what the
/// trace says. Nodes of a pass without time in the graph, or that the trace gives no time, stay as they are. REQUIRES a
/// trace of the graph's model and batch.
void anchor_to_layers(const OperatorGraph& graph, const WorkloadTrace& trace, std::vector<double>& times);

}  // namespace epocast
