#include "workloads/memory_writer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

namespace epocast {

void write_memory_csv(std::ostream& out, const WorkloadTrace& trace, const std::vector<MemoryMoment>& timeline) {
  out << "pass,layer,total_bytes,parameter_bytes,gradient_bytes,optimizer_state_bytes,activation_bytes,"
         "activation_gradient_bytes,workspace_bytes\n";
  for (const MemoryMoment& m : timeline)
    out << fmt::format("{},{},{},{},{},{},{},{},{}\n", to_string(m.pass), trace.layers[m.layer].name,
                       m.use.total().value, m.use.parameters.value, m.use.gradients.value, m.use.optimizer_state.value,
                       m.use.activations.value, m.use.activation_gradients.value, m.use.workspace.value);
}

void write_memory_json(std::ostream& out, const WorkloadTrace& trace, const std::vector<MemoryMoment>& timeline) {
  nlohmann::ordered_json document{{"model", trace.model}, {"batch", trace.batch}};
  document["moments"] = nlohmann::ordered_json::array();
  for (const MemoryMoment& m : timeline)
    document["moments"].push_back({{"pass", to_string(m.pass)},
                                   {"layer", trace.layers[m.layer].name},
                                   {"total_bytes", m.use.total().value},
                                   {"parameter_bytes", m.use.parameters.value},
                                   {"gradient_bytes", m.use.gradients.value},
                                   {"optimizer_state_bytes", m.use.optimizer_state.value},
                                   {"activation_bytes", m.use.activations.value},
                                   {"activation_gradient_bytes", m.use.activation_gradients.value},
                                   {"workspace_bytes", m.use.workspace.value}});
  // Names from a user's file may not be UTF-8; replacing is better than failing at the very end.
  out << document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace epocast
