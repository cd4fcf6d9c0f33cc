#pragma once
// A dataflow graph under construction, in the operations of TensorFlow 1: what its Python functions add to a graph,
// with the constants and shape computations they bring along. Shapes are known by the number of their values; they are
// static or, as for batches of texts of any length, found while running.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/operator_graph.hpp"

namespace epocast {

/// An output of a node.
struct Tensor {
  std::int32_t node = -1;
  std::int32_t output = 0;
  double values = 0;
  bool is_dynamic = false;  ///< its shape is known only while running
  bool has_batch = false;   ///< one of its dimensions is the batch; not so for what only depends on variables

  bool exists() const { return node >= 0; }
};

/// Whether two shapes are known to be the same. Equal numbers of values, with or without the batch, stand for that.
inline bool surely_equal(const Tensor& a, const Tensor& b) {
  return !a.is_dynamic && !b.is_dynamic && a.values == b.values && a.has_batch == b.has_batch;
}

using Tensors = std::vector<Tensor>;

struct DataflowNode {
  std::uint16_t type = 0;
  std::uint32_t layer = 0;
  std::int32_t step = -1;
  OperatorPhase phase = OperatorPhase::forward;
  Lifetime lifetime = Lifetime::normal;
  std::int32_t outputs = 1;
  std::int32_t variable = -1;
  double values = 0;  ///< of all outputs together
  double work = 0;    ///< FLOP, up to a factor per layer and pass
  bool is_dynamic = false;
  bool has_batch = false;
  double rows = 0;             ///< of a softmax: how many distributions
  bool moves_no_data = false;  ///< another view of its input
  std::uint32_t in_begin = 0, in_end = 0;
};

/// A trained variable.
struct Variable {
  Tensor value;  ///< as its readers see it
  std::int32_t node = -1;
  bool is_sparse = false;  ///< read by rows, so that its gradient has rows too
};

class Dataflow {
 public:
  Dataflow();

  // What new nodes belong to.
  std::uint32_t layer = 0;
  std::int32_t step = -1;
  OperatorPhase phase = OperatorPhase::forward;
  bool is_dynamic = false;  ///< whether activations have shapes that are found while running

  /// A node with one output of so many values. `work` [FLOP] is what it computes; by default nothing.
  Tensor add(const char* type, const Tensors& inputs, double values, double work = 0);
  /// A node with several outputs of equal size.
  Tensors add_many(const char* type, const Tensors& inputs, int outputs, double values_each);
  /// A node that hands on its first input's memory under another shape.
  Tensor view(const char* type, const Tensors& inputs, double values);
  /// A constant that is part of the graph; small unless `values` says otherwise.
  Tensor constant(double values = 1);
  /// A control input: an edge without data.
  static Tensor control(const Tensor& after) { return {after.node, after.output, 0}; }

  /// Element by element, with broadcasting: as many values as the larger input, one operation per value.
  Tensor binary(const char* type, const Tensor& a, const Tensor& b);
  Tensor unary(const char* type, const Tensor& a, double work_per_value = 1);
  /// With a constant: two nodes.
  Tensor with_constant(const char* type, const Tensor& a);
  Tensor shape_of(const Tensor& a);  ///< a constant if the shape is static
  Tensor reshape(const Tensor& a, double values);
  Tensor transpose(const Tensor& a);
  /// tf.tensordot's transpose into the order that the dimensions have already, for which the kernel hands its input on.
  Tensor transpose_in_place(const Tensor& a);
  /// Mean or sum over some dimensions, given by a constant.
  Tensor reduce(const char* type, const Tensor& a, double values);
  Tensor concat(const Tensors& parts);
  Tensors split(const Tensor& a, int parts);
  /// tf.zeros_like: a small constant, a filled tensor (all that have the batch are too large), or a node.
  Tensor zeros_like(const Tensor& a);

  /// A variable with all that comes with it: initial values (random or constant), assignment, restoring, the two checks
  /// whether it has a value that a MonitoredTrainingSession makes, reading. Slots of optimizers and moving averages are
  /// not trained.
  Variable variable(double values, bool is_random, bool is_trained = true);
  const std::vector<Variable>& trained() const { return trained_; }
  void set_sparse(const Variable& variable);

  const std::vector<DataflowNode>& nodes() const { return nodes_; }
  std::vector<DataflowNode>& nodes() { return nodes_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  Tensors inputs_of(std::int32_t node) const;
  const std::vector<std::string>& types() const { return types_; }
  const std::string& type_of(std::int32_t node) const { return types_[nodes_[static_cast<std::size_t>(node)].type]; }
  Tensor output_of(std::int32_t node, int output = 0) const;

 private:
  std::uint16_t type_index(const char* type);
  std::int32_t make(const char* type, const Tensors& inputs, int outputs, double values);

  std::vector<DataflowNode> nodes_;
  std::vector<Tensor> inputs_;
  std::vector<std::string> types_;
  std::unordered_map<std::string, std::uint16_t> type_numbers_;
  std::vector<Variable> trained_;
  std::int32_t restored_ = -1;  ///< the saver's node that reads all variables' values from a file
};

}  // namespace epocast
