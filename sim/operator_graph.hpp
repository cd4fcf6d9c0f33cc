#pragma once
// A training step as a dataflow graph of single operations, each on one device: what partitioners of operators place.
// Arrays by node, so that graphs of hundreds of thousands of nodes stay small.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace epocast {

enum class OperatorPhase : std::uint8_t {
  setup,  ///< makes, saves, restores variables: in the graph, but runs outside of the training loop
  forward,
  backward,
  update,
  unused,  ///< in the graph, but nothing that a step has to do reads it: TensorFlow leaves it out when it runs
};

/// How long the memory of a node's output lives (Qararyah 2020, section 4.1.2).
enum class Lifetime : std::uint8_t {
  normal,     ///< until the last consumer has run
  residual,   ///< over iterations: variables and constants
  reference,  ///< none of its own: works in a variable's memory and stays on its device
};

/// Whether it runs in the training loop.
inline bool runs(OperatorPhase phase) { return phase != OperatorPhase::setup && phase != OperatorPhase::unused; }

const char* to_string(OperatorPhase phase);
const char* to_string(Lifetime lifetime);

/// Nodes are in a topological order: each reads from earlier ones only. Sizes in bytes.
struct OperatorGraph {
  std::string model;
  std::int64_t batch = 0;
  std::vector<std::string> operations;  ///< "MatMul", "Const", ...
  std::vector<std::string> layers;      ///< of the model; the last, "", for what belongs to no layer

  // By node.
  std::vector<std::uint16_t> operation;  ///< index into operations
  std::vector<std::uint32_t> layer;      ///< index into layers
  std::vector<std::int32_t> step;        ///< of an unrolled recurrent layer, from 0; -1 elsewhere
  std::vector<OperatorPhase> phase;
  std::vector<Lifetime> lifetime;
  std::vector<double> flop;
  std::vector<double> bytes_read;
  std::vector<double> bytes_written;
  std::vector<double> output_bytes;     ///< all outputs together; what must be in memory
  std::vector<std::int32_t> variable;   ///< the variable whose memory a reference node works in; -1 elsewhere
  std::vector<std::uint32_t> in_begin;  ///< node n reads inputs in_begin[n] .. in_begin[n + 1] - 1
  // By input.
  std::vector<std::uint32_t> producer;  ///< node
  std::vector<float> edge_bytes;        ///< of the producer's output, the part that is read; 0: control only

  std::size_t size() const { return operation.size(); }
  std::size_t edges() const { return producer.size(); }
  const std::string& operation_of(std::size_t node) const { return operations[operation[node]]; }
  std::span<const std::uint32_t> producers(std::size_t node) const {
    return {producer.data() + in_begin[node], producer.data() + in_begin[node + 1]};
  }
};

/// Whether the output is the first input's memory under another shape: a Reshape is, a Shape, whose output is a few
/// numbers, is not.
bool is_view(const OperatorGraph& graph, std::size_t node);

/// What a node is called in tables and files: layer, operation, number.
std::string node_name(const OperatorGraph& graph, std::size_t node);

/// Bytes read and written up to which an operation is the host's and takes no time on a device.
inline constexpr double kHostBytes = 256;

/// The same edges seen from the other end: node n is read by consumer[begin[n]] .. consumer[begin[n + 1] - 1].
struct OperatorConsumers {
  std::vector<std::uint32_t> begin, consumer;
};
OperatorConsumers consumers(const OperatorGraph& graph);

}  // namespace epocast
