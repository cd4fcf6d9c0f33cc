#include "workloads/operators/gradient_rules.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace epocast {
namespace {

using Context = GradientContext;

/// What sums the gradients of a broadcasting operation back to the shapes of its inputs.
class Broadcast {
 public:
  Broadcast(Dataflow& graph, const Tensor& x, const Tensor& y)
      : graph_(graph),
        x_(x),
        y_(y),
        x_shape_(graph.shape_of(x)),
        y_shape_(graph.shape_of(y)),
        axes_(graph.add("BroadcastGradientArgs", {x_shape_, y_shape_}, 8)) {}
  Tensor to_x(const Tensor& part) { return sum(part, x_, x_shape_); }
  Tensor to_y(const Tensor& part) { return sum(part, y_, y_shape_); }

 private:
  Tensor sum(const Tensor& part, const Tensor& like, const Tensor& shape) {
    const double work = part.values > like.values ? part.values : 0;
    const Tensor total = graph_.add("Sum", {part, axes_}, like.values, work);
    return graph_.view("Reshape", {total, shape}, like.values);
  }
  Dataflow& graph_;
  const Tensor &x_, &y_;
  Tensor x_shape_, y_shape_, axes_;
};

bool all_equal(const Context& c) { return surely_equal(c.in[0], c.in[1]) && surely_equal(c.in[0], c.g()); }

Tensors grad_add(const Context& c) {
  if (all_equal(c)) return {c.g(), c.g()};
  Broadcast b(c.graph, c.in[0], c.in[1]);
  const Tensor x = b.to_x(c.g());
  return {x, b.to_y(c.g())};
}

Tensors grad_sub(const Context& c) {
  if (all_equal(c)) return {c.g(), c.graph.unary("Neg", c.g())};
  Broadcast b(c.graph, c.in[0], c.in[1]);
  const Tensor x = b.to_x(c.g());
  return {x, c.graph.unary("Neg", b.to_y(c.g()))};
}

Tensors grad_mul(const Context& c) {
  Dataflow& d = c.graph;
  if (all_equal(c)) {
    const Tensor x = d.binary("Mul", c.g(), c.in[1]);
    return {x, d.binary("Mul", c.in[0], c.g())};
  }
  Broadcast b(d, c.in[0], c.in[1]);
  const Tensor x = b.to_x(d.binary("Mul", c.g(), c.in[1]));
  return {x, b.to_y(d.binary("Mul", c.in[0], c.g()))};
}

Tensors grad_div(const Context& c) {
  Dataflow& d = c.graph;
  Broadcast b(d, c.in[0], c.in[1]);
  const Tensor x = b.to_x(d.binary("RealDiv", c.g(), c.in[1]));
  const Tensor negative = d.unary("Neg", c.in[0]);
  const Tensor quotient = d.binary("RealDiv", d.binary("RealDiv", negative, c.in[1]), c.in[1]);
  return {x, b.to_y(d.binary("Mul", c.g(), quotient))};
}

Tensors grad_squared_difference(const Context& c) {
  Dataflow& d = c.graph;
  Broadcast b(d, c.in[0], c.in[1]);
  const Tensor two = d.constant();
  const Tensor difference = d.binary("Mul", d.binary("Mul", two, c.g()), d.binary("Sub", c.in[0], c.in[1]));
  const Tensor x = b.to_x(difference);
  return {x, d.unary("Neg", b.to_y(difference))};
}

Tensors grad_pow(const Context& c) {
  Dataflow& d = c.graph;
  Broadcast b(d, c.in[0], c.in[1]);
  const Tensor power = d.binary("Pow", c.in[0], d.with_constant("Sub", c.in[1]));
  const Tensor x = b.to_x(d.binary("Mul", d.binary("Mul", c.g(), c.in[1]), power));
  const Tensor positive = d.with_constant("Greater", c.in[0]);
  const Tensor ones = d.zeros_like(c.in[0]);
  const Tensor safe = d.add("Select", {positive, c.in[0], ones}, c.in[0].values);
  const Tensor log = d.unary("Log", safe);
  const Tensor zeros = d.zeros_like(c.in[0]);
  const Tensor chosen = d.add("Select", {positive, log, zeros}, c.in[0].values);
  return {x, b.to_y(d.binary("Mul", d.binary("Mul", c.g(), c.out()), chosen))};
}

Tensors grad_select(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor zeros = d.zeros_like(c.in[1]);
  const Tensor x = d.add("Select", {c.in[0], c.g(), zeros}, c.in[1].values);
  return {{}, x, d.add("Select", {c.in[0], zeros, c.g()}, c.in[2].values)};
}

/// Of an activation: one node that reads the gradient and, mostly, the output.
Tensors grad_of_output(const Context& c) {
  const std::string type = c.graph.type_of(c.node) + "Grad";
  return {c.graph.add(type.c_str(), {c.out(), c.g()}, c.in[0].values, c.work())};
}

Tensors grad_neg(const Context& c) { return {c.graph.unary("Neg", c.g())}; }
Tensors grad_none(const Context&) { return {}; }
Tensors grad_identity(const Context& c) { return {c.g()}; }

Tensors grad_bias_add(const Context& c) {
  return {c.g(), c.graph.add("BiasAddGrad", {c.g()}, c.in[1].values, c.g().values)};
}

/// Of a product: each factor's gradient is a product of as much work, wasted if nobody wants it.
Tensors grad_matmul(const Context& c) {
  const std::string type = c.graph.type_of(c.node);
  const Tensor x = c.graph.add(type.c_str(), {c.g(), c.in[1]}, c.in[0].values, c.used[0] ? c.work() : 0);
  return {x, c.graph.add(type.c_str(), {c.in[0], c.g()}, c.in[1].values, c.used[1] ? c.work() : 0)};
}

Tensors grad_convolution(const Context& c) {
  Dataflow& d = c.graph;
  const std::string type = d.type_of(c.node);
  const Tensor shapes = d.view("ShapeN", {c.in[0], c.in[1]}, 8);
  const Tensor x =
      d.add((type + "BackpropInput").c_str(), {shapes, c.in[1], c.g()}, c.in[0].values, c.used[0] ? c.work() : 0);
  return {x,
          d.add((type + "BackpropFilter").c_str(), {c.in[0], shapes, c.g()}, c.in[1].values, c.used[1] ? c.work() : 0)};
}

/// Of a transposed convolution, whose inputs are a shape, filters and what is spread out.
Tensors grad_transposed_convolution(const Context& c) {
  Dataflow& d = c.graph;
  std::string type = d.type_of(c.node);
  type.resize(type.size() - std::string("BackpropInput").size());
  const Tensor shape = d.shape_of(c.in[1]);
  const Tensor filters =
      d.add((type + "BackpropFilter").c_str(), {c.g(), shape, c.in[2]}, c.in[1].values, c.used[1] ? c.work() : 0);
  return {{}, filters, d.add(type.c_str(), {c.g(), c.in[1]}, c.in[2].values, c.used[2] ? c.work() : 0)};
}

Tensors grad_max_pool(const Context& c) {
  const std::string type = c.graph.type_of(c.node) + "Grad";
  return {c.graph.add(type.c_str(), {c.in[0], c.out(), c.g()}, c.in[0].values, c.work())};
}

Tensors grad_average_pool(const Context& c) {
  const std::string type = c.graph.type_of(c.node) + "Grad";
  const Tensor shape = c.graph.shape_of(c.in[0]);
  return {c.graph.add(type.c_str(), {shape, c.g()}, c.in[0].values, c.work())};
}

Tensors grad_resize(const Context& c) {
  const Tensor size = c.graph.constant(2);
  return {c.graph.add("ResizeNearestNeighborGrad", {c.g(), size}, c.in[0].values, c.g().values)};
}

Tensors grad_crop_and_resize(const Context& c) {
  const Tensor shape = c.graph.shape_of(c.in[0]);
  return {c.graph.add("CropAndResizeGradImage", {c.g(), c.in[1], c.in[2], shape}, c.in[0].values, c.work())};
}

Tensors grad_exp(const Context& c) { return {c.graph.binary("Mul", c.g(), c.out())}; }

Tensors grad_lrn(const Context& c) {
  return {c.graph.add("LRNGrad", {c.g(), c.in[0], c.out()}, c.in[0].values, c.work())};
}

Tensors grad_reshape(const Context& c) {
  const Tensor shape = c.graph.shape_of(c.in[0]);
  return {c.graph.view("Reshape", {c.g(), shape}, c.in[0].values)};
}

Tensors grad_transpose(const Context& c) {
  const Tensor order = c.graph.add("InvertPermutation", {c.in[1]}, 4);
  if (c.graph.nodes()[static_cast<std::size_t>(c.node)].moves_no_data)
    return {c.graph.view("Transpose", {c.g(), order}, c.in[0].values)};
  return {c.graph.add("Transpose", {c.g(), order}, c.in[0].values)};
}

/// Of a sum over some dimensions: the shape with ones in their place, and how often each value is repeated.
Tensor repeat(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor shape = d.shape_of(c.in[0]);
  const Tensor rank = d.constant();
  const Tensor axes = d.binary("FloorMod", d.binary("Add", c.in[1], rank), rank);
  const Tensor axes_shape = d.constant(), start = d.constant(), delta = d.constant();
  const Tensor range = d.add("Range", {start, rank, delta}, 4);
  const Tensor one = d.constant();
  const Tensor ones = d.add("Fill", {axes_shape, one}, 4);
  const Tensor kept = d.add("DynamicStitch", {range, axes, shape, ones}, 4);
  const Tensor divisor = d.with_constant("Maximum", kept);
  const Tensor tiles = d.binary("FloorDiv", shape, divisor);
  const Tensor column = d.view("Reshape", {c.g(), kept}, c.g().values);
  return d.add("Tile", {column, tiles}, c.in[0].values);
}

/// Of a sum over everything.
Tensor repeat_all(const Context& c) {
  const Tensor scalar = c.graph.reshape(c.g(), c.g().values);
  const Tensor shape = c.graph.shape_of(c.in[0]);
  return c.graph.add("Tile", {scalar, shape}, c.in[0].values);
}

/// Whether nothing is left of the shape, not even a batch of one.
bool is_scalar(const Tensor& t) { return t.values == 1 && !t.has_batch; }

Tensors grad_sum(const Context& c) { return {is_scalar(c.out()) ? repeat_all(c) : repeat(c)}; }

Tensors grad_mean(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor sum = is_scalar(c.out()) ? repeat_all(c) : repeat(c);
  if (!c.in[0].is_dynamic) return {d.with_constant("RealDiv", sum)};
  const auto count = [&](const Tensor& a) { return d.reduce("Prod", d.shape_of(a), 1); };
  const Tensor inputs = count(c.in[0]), outputs = count(c.out());
  const Tensor factor = d.binary("FloorDiv", inputs, d.with_constant("Maximum", outputs));
  return {d.binary("RealDiv", sum, d.add("Cast", {factor}, 1))};
}

Tensors grad_concat(const Context& c) {
  Dataflow& d = c.graph;
  const std::size_t parts = c.in.size() - 1;
  const Tensor rank = d.constant();
  const Tensor axis = d.binary("FloorMod", c.in.back(), rank);
  Tensors shapes;
  if (c.out().is_dynamic) {
    d.shape_of(c.in.front());
    shapes.push_back(d.view("ShapeN", Tensors(c.in.begin(), c.in.end() - 1), 4.0 * static_cast<double>(parts)));
  } else {
    for (std::size_t p = 0; p < parts; ++p) shapes.push_back(d.shape_of(c.in[p]));
  }
  Tensors out;
  if (parts > 16) {  // one split instead of so many slices
    const Tensor stacked = d.add("Pack", shapes, 4.0 * static_cast<double>(parts));
    const Tensor zero = d.constant(), size = d.constant();
    const Tensor begin = d.add("Pack", {axis, zero}, 2);
    const Tensor sizes = d.view("Squeeze", {d.add("Slice", {stacked, begin, size}, 4)}, 4);
    out = d.add_many("SplitV", {c.g(), sizes, axis}, static_cast<int>(parts), c.in.front().values);
  } else {
    Tensors inputs = shapes;
    inputs.insert(inputs.begin(), axis);
    const Tensor offsets = d.add("ConcatOffset", inputs, 4.0 * static_cast<double>(parts));
    for (std::size_t p = 0; p < parts; ++p)
      out.push_back(d.add("Slice", {c.g(), offsets, shapes[std::min(p, shapes.size() - 1)]}, c.in[p].values));
  }
  return out;
}

Tensors grad_split(const Context& c) {
  Tensors inputs = c.grads;
  inputs.push_back(c.in[0]);
  return {{}, c.graph.add("ConcatV2", inputs, c.in[1].values)};
}

Tensors grad_pack(const Context& c) {
  return c.graph.add_many("Unpack", {c.g()}, static_cast<int>(c.in.size()), c.in.front().values);
}

Tensors grad_strided_slice(const Context& c) {
  const Tensor shape = c.graph.shape_of(c.in[0]);
  return {c.graph.add("StridedSliceGrad", {shape, c.in[1], c.in[2], c.in[3], c.g()}, c.in[0].values)};
}

Tensors grad_pad(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor rank = d.constant(), one = d.constant(), zero = d.constant();
  const Tensor size = d.add("Pack", {rank, one}, 2);
  const Tensor before = d.reshape(d.add("Slice", {c.in[1], zero, size}, 4), 4);
  return {d.add("Slice", {c.g(), before, d.shape_of(c.in[0])}, c.in[0].values)};
}

Tensors grad_depth_to_space(const Context& c) { return {c.graph.add("SpaceToDepth", {c.g()}, c.in[0].values)}; }
Tensors grad_space_to_depth(const Context& c) { return {c.graph.add("DepthToSpace", {c.g()}, c.in[0].values)}; }

/// Rows of a table: the gradient is rows with their numbers.
Tensors grad_gather(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor shape = d.constant(4);
  d.add("Cast", {shape}, 4);
  const Tensor count = d.with_constant("ExpandDims", d.view("Size", {c.in[1]}, 1));
  const Tensor begin = d.constant(), end = d.constant(), stride = d.constant();
  const Tensor row = d.view("StridedSlice", {shape, begin, end, stride}, 4);
  const Tensor rows_shape = d.concat({count, row});
  const Tensor rows = d.view("Reshape", {c.g(), rows_shape}, c.g().values);
  d.view("Reshape", {c.in[1], count}, c.in[1].values);
  return {rows};
}

Tensors grad_softmax(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor product = d.binary("Mul", c.g(), c.out());
  const Tensor sum = d.reduce("Sum", product, d.nodes()[static_cast<std::size_t>(c.node)].rows);
  return {d.binary("Mul", d.binary("Sub", c.g(), sum), c.out())};
}

/// The operation has computed the gradient already.
Tensors grad_cross_entropy(const Context& c) {
  Dataflow& d = c.graph;
  const Tensor prevented = d.view("PreventGradient", {c.in[0]}, c.in[0].values);
  const Tensor column = d.with_constant("ExpandDims", c.g());
  return {d.add("Mul", {column, prevented}, c.in[0].values, c.in[0].values)};
}

/// One operation with three results; those of scale and shift are small.
Tensors grad_fused_norm(const Context& c) {
  const Tensor moments{c.node, 0, c.in[1].values};
  const Tensor x = c.graph.add("FusedBatchNormGrad", {c.g(), c.in[0], c.in[1], moments}, c.in[0].values, 2 * c.work());
  const Tensor of_channels{x.node, 0, c.in[1].values};
  return {x, of_channels, of_channels};
}

Tensors grad_add_n(const Context& c) { return Tensors(c.in.size(), c.g()); }
Tensors grad_l2_loss(const Context& c) { return {c.graph.binary("Mul", c.in[0], c.g())}; }

const std::unordered_map<std::string, GradientRule>& rules() {
  static const std::unordered_map<std::string, GradientRule> table{
      {"Add", grad_add},
      {"AddN", grad_add_n},
      {"Sub", grad_sub},
      {"Mul", grad_mul},
      {"RealDiv", grad_div},
      {"SquaredDifference", grad_squared_difference},
      {"Pow", grad_pow},
      {"Select", grad_select},
      {"Relu", grad_of_output},
      {"Sigmoid", grad_of_output},
      {"Tanh", grad_of_output},
      {"Exp", grad_exp},
      {"Rsqrt", grad_of_output},
      {"Neg", grad_neg},
      {"StopGradient", grad_none},
      {"Identity", grad_identity},
      {"BiasAdd", grad_bias_add},
      {"MatMul", grad_matmul},
      {"BatchMatMul", grad_matmul},
      {"Conv2D", grad_convolution},
      {"Conv3D", grad_convolution},
      {"Conv2DBackpropInput", grad_transposed_convolution},
      {"Conv3DBackpropInput", grad_transposed_convolution},
      {"MaxPool", grad_max_pool},
      {"MaxPool3D", grad_max_pool},
      {"AvgPool", grad_average_pool},
      {"AvgPool3D", grad_average_pool},
      {"ResizeNearestNeighbor", grad_resize},
      {"CropAndResize", grad_crop_and_resize},
      {"LRN", grad_lrn},
      {"Reshape", grad_reshape},
      {"Squeeze", grad_reshape},
      {"ExpandDims", grad_reshape},
      {"Transpose", grad_transpose},
      {"Sum", grad_sum},
      {"Mean", grad_mean},
      {"ConcatV2", grad_concat},
      {"Split", grad_split},
      {"Pack", grad_pack},
      {"StridedSlice", grad_strided_slice},
      {"Pad", grad_pad},
      {"DepthToSpace", grad_depth_to_space},
      {"SpaceToDepth", grad_space_to_depth},
      {"GatherV2", grad_gather},
      {"Softmax", grad_softmax},
      {"SparseSoftmaxCrossEntropyWithLogits", grad_cross_entropy},
      {"L2Loss", grad_l2_loss},
      {"FusedBatchNorm", grad_fused_norm},
  };
  return table;
}

}  // namespace

GradientRule find_gradient_rule(const std::string& type) {
  const auto found = rules().find(type);
  return found == rules().end() ? nullptr : found->second;
}

bool stops_gradients(const std::string& type) {
  static const std::set<std::string> names{"Shape",  "ShapeN", "StopGradient", "AssignSub",    "AssignAdd",
                                           "Assign", "Less",   "Greater",      "GreaterEqual", "Cast"};
  return names.contains(type);
}

}  // namespace epocast
