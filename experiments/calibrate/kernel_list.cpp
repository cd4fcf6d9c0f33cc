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
  for (const KernelPass known : {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights}) {
    if (pass != to_string(known)) continue;
    // A layer that is one product is measured as such, for others of its shape; what is several kernels, as a whole.
    const std::vector<LayerKernel> parts = layer_kernels(layer, batch, known);
    if (parts.size() == 1 && parts.front().repeats == 1) return parts.front().shape;
    return layer_kernel(layer, batch, known);
  }
  return std::nullopt;
}

void write_kernel_list(std::ostream& out, const std::vector<Model>& models, const std::vector<std::int64_t>& batches,
                       Optimizer optimizer) {
  out << "operator,pass,shape,kind,variant,batch,inputs,channels,height,width,depth,input_values,out_channels,out_"
         "height,"
         "out_width,out_depth,kernel_height,kernel_width,kernel_depth,stride,dilation,groups,padding_height,padding_"
         "width,"
         "padding_depth,neighbours,heads,steps,parameters\n";
  std::set<std::string> seen;
  for (const Model& model : models)
    for (const std::int64_t batch : batches)
      for (int i = 0; i < static_cast<int>(model.layers.size()); ++i)
        for (const char* pass : {"forward", "backward_data", "backward_weights", "gradient_sum", "update"}) {
          const auto kernel = step_kernel(model, i, batch, pass, optimizer);
          if (!kernel) continue;
          const Layer& l = model.layers[static_cast<std::size_t>(i)];
          const bool is_layer = std::string(pass) != "update" && std::string(pass) != "gradient_sum";
          // Of sums and updates the number of values tells all.
          const std::string row = fmt::format(
              "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
              kernel->family(), to_string(kernel->pass), kernel->text(), is_layer ? to_string(l.kind) : pass,
              is_layer ? l.variant : std::string(), batch,
              std::string(pass) == "gradient_sum" ? readers(model, i) : static_cast<std::int64_t>(l.inputs.size()),
              l.input.channels, l.input.height, l.input.width, l.input.depth, l.input_values, l.output.channels,
              l.output.height, l.output.width, l.output.depth, l.kernel_height, l.kernel_width, l.kernel_depth,
              l.stride, l.dilation, l.groups, l.padding_height, l.padding_width, l.padding_depth, l.neighbours, l.heads,
              l.steps, l.parameter_count());
          const std::string key = is_layer ? row : std::string(pass) + kernel->text();
          if (seen.insert(key).second) out << row;
        }
}

}  // namespace epocast
