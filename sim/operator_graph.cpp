#include "sim/operator_graph.hpp"

namespace epocast {

const char* to_string(OperatorPhase phase) {
  switch (phase) {
    case OperatorPhase::setup: return "setup";
    case OperatorPhase::forward: return "forward";
    case OperatorPhase::backward: return "backward";
    case OperatorPhase::update: return "update";
    case OperatorPhase::unused: return "unused";
  }
  return "";
}

const char* to_string(Lifetime lifetime) {
  switch (lifetime) {
    case Lifetime::normal: return "normal";
    case Lifetime::residual: return "residual";
    case Lifetime::reference: return "reference";
  }
  return "";
}

bool is_view(const OperatorGraph& graph, std::size_t node) {
  const std::uint32_t first = graph.in_begin[node];
  return graph.lifetime[node] == Lifetime::normal && runs(graph.phase[node]) && graph.bytes_written[node] == 0 &&
         graph.output_bytes[node] > 0 && first < graph.in_begin[node + 1] &&
         graph.edge_bytes[first] == static_cast<float>(graph.output_bytes[node]);
}

std::string node_name(const OperatorGraph& graph, std::size_t node) {
  const std::string& layer = graph.layers[graph.layer[node]];
  return layer + (layer.empty() ? "" : "/") + graph.operation_of(node) + '_' + std::to_string(node);
}

OperatorConsumers consumers(const OperatorGraph& graph) {
  OperatorConsumers out;
  out.begin.assign(graph.size() + 1, 0);
  for (const std::uint32_t p : graph.producer) ++out.begin[p + 1];
  for (std::size_t n = 0; n < graph.size(); ++n) out.begin[n + 1] += out.begin[n];
  out.consumer.resize(graph.edges());
  std::vector<std::uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::size_t n = 0; n < graph.size(); ++n)
    for (const std::uint32_t p : graph.producers(n)) out.consumer[next[p]++] = static_cast<std::uint32_t>(n);
  return out;
}

}  // namespace epocast
