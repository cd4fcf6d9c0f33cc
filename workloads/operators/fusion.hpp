#pragma once
// Chains of cheap operations as single kernels: what XLA, or hand-written kernels of norms, GELU, dropout and softmax,
// make of a graph of single operations.

#include "sim/operator_graph.hpp"

namespace epocast {

/// The same step with fewer nodes. Element-wise operations, sums along dimensions and softmax of a layer's pass (of a
/// step, where recurrent layers are unrolled) that hang together become one node "Fusion", which reads what comes from
/// outside once and writes what is read outside. Convolutions, products, tables and whatever copies parts stay as they
/// are. What only the gradient of its own layer reads again is not kept if less need be read to compute it once more:
/// the derivative of GELU has its input, a dropout's mask a byte per value. FLOP are added up.
///
/// Limits: a kernel reads its inputs once, whatever it sums up before it can go on.
OperatorGraph fuse_kernels(const OperatorGraph& graph);

}  // namespace epocast
