#include "sim/obsolescence.hpp"

#include <algorithm>

namespace epocast {

VoidIterations::VoidIterations(const CompiledGraph& graph)
    : rules_of_(graph.obsolescences.empty() ? 0 : graph.tasks.size()) {
  for (const CompiledObsolescence& o : graph.obsolescences) {
    const std::uint32_t ranks = graph.tasks[o.task].width;
    for (const std::uint32_t task : o.follows) rules_of_[task].push_back(static_cast<std::uint32_t>(rules_.size()));
    rules_.push_back({o.task, o.joins, o.follows.size() > 1, std::vector<std::vector<bool>>(ranks)});
    skips_.resize(std::max<std::size_t>(skips_.size(), ranks), 0);
  }
}

void VoidIterations::add(Rule& rule, std::uint32_t rank, std::int64_t iteration) {
  auto& known = rule.is_void[rank];
  known.resize(static_cast<std::size_t>(iteration) + 1, false);
  known.back() = true;
  if (rule.has_followers) ++skips_[rank];
}

bool VoidIterations::skipped(Instance i, std::int64_t iteration) const {
  return any() && std::any_of(rules_of_[i.task].begin(), rules_of_[i.task].end(), [&](std::uint32_t r) {
           return rules_[r].has_followers && contains(rules_[r], i.rank, iteration);
         });
}

}  // namespace epocast
