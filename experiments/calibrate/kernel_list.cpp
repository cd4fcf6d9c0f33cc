#include "experiments/calibrate/kernel_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "costmodels/layer_kernels.hpp"

namespace epocast {
namespace {

/// How many layers read the output of this one and hand back a gradient.
std::int64_t readers(const Model& model, int layer) {
  std::int64_t count = 0;
  for (const Layer& reader : model.layers) count += std::ranges::count(reader.inputs, layer);
  return count;
}

}  // namespace

std::optional<KernelShape> step_kernel(const Model& model, int index, std::int64_t batch, const std::string& pass,
                                       Optimizer optimizer) {
  const Layer& layer = model.layers[static_cast<std::size_t>(index)];
  if (pass == "update") {
    if (layer.parameter_count() == 0) return std::nullopt;
    return KernelShape{MemoryShape{std::string("update_") + to_string(optimizer),
                                   optimizer_accesses(optimizer) * layer.parameter_count()},
                       KernelPass::forward};
  }
  if (pass == "gradient_sum") {
    const std::int64_t parts = readers(model, index);
    if (parts < 2) return std::nullopt;
    return KernelShape{MemoryShape{"gradient_sum", batch * (parts + 1) * layer.output.values()},
                       KernelPass::backward_data};
  }
  if (pass == "backward") {
    auto shape = layer_kernel(layer, batch, KernelPass::backward_weights);
    if (!shape) shape = layer_kernel(layer, batch, KernelPass::backward_data);
    if (shape) shape->pass = KernelPass::backward;
    return shape;
  }
  const KernelPass known = parse_kernel_pass(pass);
  // A layer that is one product is measured as such, for others of its shape; what is several kernels, as a whole.
  const std::vector<LayerKernel> parts = layer_kernels(layer, batch, known);
  if (parts.size() == 1 && parts.front().repeats == 1) return parts.front().shape;
  return layer_kernel(layer, batch, known);
}

namespace {

constexpr const char* kColumns =
    "operator,pass,shape,precision,kind,variant,batch,inputs,channels,height,width,depth,input_values,out_channels,"
    "out_height,out_width,out_depth,kernel_height,kernel_width,kernel_depth,stride,dilation,groups,padding_height,"
    "padding_width,padding_depth,neighbours,heads,steps,parameters\n";

/// One row: how measurements call the kernel, what it is, and the sizes of the layer that it is of.
std::string row_of(const KernelShape& kernel, const std::string& kind, const std::string& variant, const Layer& l,
                   std::int64_t batch, std::int64_t inputs, Precision precision) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                     kernel.family(), to_string(kernel.pass), kernel.text(), to_string(precision), kind, variant, batch,
                     inputs, l.input.channels, l.input.height, l.input.width, l.input.depth, l.input_values,
                     l.output.channels, l.output.height, l.output.width, l.output.depth, l.kernel_height,
                     l.kernel_width, l.kernel_depth, l.stride, l.dilation, l.groups, l.padding_height, l.padding_width,
                     l.padding_depth, l.neighbours, l.heads, l.steps, l.parameter_count());
}

/// What a kernel of a layer is, for the program that runs it: the layer's kind, or one of the kernels that a layer on
/// matrix units consists of, whose shape tells all.
std::string kind_of(const KernelShape& kernel, const Layer& layer) {
  if (std::holds_alternative<GemmShape>(kernel.of)) return "product";
  if (std::holds_alternative<AttentionShape>(kernel.of)) return "fused_attention";
  if (std::holds_alternative<RecurrentShape>(kernel.of)) return "recurrence";
  if (const auto* memory = std::get_if<MemoryShape>(&kernel.of)) {
    if (layer.kind == LayerKind::attention) return "scores_" + memory->op;
    if (layer.kind == LayerKind::linear) return memory->op;
  }
  return to_string(layer.kind);
}

}  // namespace

void write_kernel_list(std::ostream& out, const std::vector<Model>& models, const std::vector<std::int64_t>& batches,
                       Optimizer optimizer, Precision precision) {
  out << kColumns;
  std::set<std::string> seen;
  const bool in_parts = precision != Precision::fp32;
  for (const Model& model : models)
    for (const std::int64_t batch : batches)
      for (int i = 0; i < static_cast<int>(model.layers.size()); ++i)
        for (const char* pass : {"forward", "backward_data", "backward_weights", "gradient_sum", "update"}) {
          const Layer& l = model.layers[static_cast<std::size_t>(i)];
          const std::string name = pass;
          // Of sums and updates the number of values tells all.
          const bool is_layer = name != "update" && name != "gradient_sum";
          const auto inputs = static_cast<std::int64_t>(l.inputs.size());
          if (in_parts && is_layer) {
            const KernelPass known = parse_kernel_pass(name);
            for (const LayerKernel& part : layer_kernels(l, batch, known, kernel_style(precision, true))) {
              const auto* memory = std::get_if<MemoryShape>(&part.shape.of);
              if (memory != nullptr && memory->op == "gradient_sum") continue;  // its own pass lists it
              const std::string row =
                  row_of(part.shape, kind_of(part.shape, l), l.variant, l, batch, inputs, precision);
              if (seen.insert(row).second) out << row;
            }
            continue;
          }
          const auto kernel = step_kernel(model, i, batch, name, optimizer);
          if (!kernel) continue;
          const std::string row = row_of(*kernel, is_layer ? to_string(l.kind) : name, is_layer ? l.variant : "", l,
                                         batch, name == "gradient_sum" ? readers(model, i) : inputs, precision);
          if (seen.insert(is_layer ? row : name + kernel->text()).second) out << row;
        }
}

}  // namespace epocast
