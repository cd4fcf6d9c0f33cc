#pragma once
// Operator graphs as CSV, JSON and GraphViz, for people and other tools.

#include <iosfwd>

#include "sim/operator_graph.hpp"

namespace epocast {

/// A row per node: node, operation, layer, step, phase, lifetime, flop, bytes_read, bytes_written, output_bytes,
/// inputs. `step` is empty outside of recurrent layers; `inputs` holds NODE:BYTES, separated by spaces.
void write_operators_csv(std::ostream& out, const OperatorGraph& graph);

/// {"model": ..., "batch": ..., "nodes": [...], "edges": [[from, to, bytes], ...]}; nodes with the same fields.
void write_operators_json(std::ostream& out, const OperatorGraph& graph);

/// A digraph whose nodes are labelled with operation and layer.
void write_operators_dot(std::ostream& out, const OperatorGraph& graph);

}  // namespace epocast
