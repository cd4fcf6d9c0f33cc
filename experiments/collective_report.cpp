#include "experiments/collective_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace epocast {

std::string AlgorithmUse::name() const { return algorithm ? to_string(*algorithm) : "measured"; }

std::vector<AlgorithmUse> algorithm_uses(const CyclicTaskGraph& graph, const ExecutionResult& result) {
  std::map<std::pair<CollectiveOp, std::optional<CollectiveAlgorithm>>, AlgorithmUse> uses;
  for (std::size_t t = 0; t < result.algorithms.size(); ++t) {
    const auto* collective = std::get_if<Collective>(&graph.tasks()[t].work);
    if (collective == nullptr) continue;
    const auto [place, is_new] = uses.try_emplace({collective->op, result.algorithms[t]});
    AlgorithmUse& use = place->second;
    if (is_new) use = {collective->op, result.algorithms[t], 0, collective->bytes, collective->bytes};
    ++use.count;
    use.smallest = std::min(use.smallest, collective->bytes);
    use.largest = std::max(use.largest, collective->bytes);
  }
  std::vector<AlgorithmUse> out;
  for (const auto& [key, use] : uses) out.push_back(use);
  return out;
}

void add_algorithm_names(const std::vector<AlgorithmUse>& uses, std::string& names) {
  for (const AlgorithmUse& use : uses)
    if (("+" + names + "+").find("+" + use.name() + "+") == std::string::npos)
      names += (names.empty() ? "" : "+") + use.name();
}

}  // namespace epocast
