#include "workloads/trace_writer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

namespace epocast {
namespace {

const std::string& input_name(const WorkloadTrace& trace, int index) {
  return trace.layers[static_cast<std::size_t>(index)].name;
}

std::string joined_inputs(const WorkloadTrace& trace, const LayerTrace& layer) {
  std::string text;
  for (int input : layer.inputs) text += (text.empty() ? "" : " ") + input_name(trace, input);
  return text;
}

nlohmann::ordered_json layer_json(const WorkloadTrace& trace, const LayerTrace& layer) {
  auto inputs = nlohmann::ordered_json::array();
  for (int input : layer.inputs) inputs.push_back(input_name(trace, input));
  auto gradients = nlohmann::ordered_json::array();
  for (const auto& tensor : layer.gradients)
    gradients.push_back({{"name", tensor.name}, {"bytes", tensor.bytes.value}});
  return {{"layer", layer.name},
          {"kind", to_string(layer.kind)},
          {"inputs", inputs},
          {"forward_s", layer.times.forward.longest().value},
          {"backward_data_s", layer.times.backward_data.longest().value},
          {"backward_weights_s", layer.times.backward_weights.longest().value},
          {"recompute_s", layer.times.recompute.longest().value},
          {"update_s", layer.times.update.longest().value},
          {"parameter_bytes", layer.parameters.value},
          {"gradients", gradients},
          {"output_bytes", layer.output.value},
          {"kept_activation_bytes", layer.kept_activations.value},
          {"workspace_bytes", layer.workspace.value},
          {"forward_flop", layer.forward_flop.value},
          {"backward_flop", layer.backward_flop.value}};
}

}  // namespace

void write_trace_csv(std::ostream& out, const WorkloadTrace& trace) {
  out << "layer,kind,inputs,forward_s,backward_data_s,backward_weights_s,recompute_s,update_s,parameter_bytes,gradient_"
         "tensors,"
         "output_bytes,kept_activation_bytes,workspace_bytes,forward_flop,backward_flop\n";
  for (const LayerTrace& layer : trace.layers) {
    const LayerTimes& t = layer.times;
    // fmt's {} gives the shortest text that reads back as the same double.
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", layer.name, to_string(layer.kind),
                       joined_inputs(trace, layer), t.forward.longest().value, t.backward_data.longest().value,
                       t.backward_weights.longest().value, t.recompute.longest().value, t.update.longest().value,
                       layer.parameters.value, layer.gradients.size(), layer.output.value, layer.kept_activations.value,
                       layer.workspace.value, layer.forward_flop.value, layer.backward_flop.value);
  }
}

void write_trace_json(std::ostream& out, const WorkloadTrace& trace) {
  nlohmann::ordered_json document{{"model", trace.model}, {"batch", trace.batch}};
  document["layers"] = nlohmann::ordered_json::array();
  for (const LayerTrace& layer : trace.layers) document["layers"].push_back(layer_json(trace, layer));
  // Names from a user's file may not be UTF-8; replacing is better than failing at the very end.
  out << document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace epocast
