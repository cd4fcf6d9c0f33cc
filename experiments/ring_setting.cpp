#include "experiments/ring_setting.hpp"

#include <cctype>
#include <string>
#include <variant>

namespace epocast {

RingSetting::RingSetting(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word == "auto") return;
  if (word.empty() || std::isalpha(static_cast<unsigned char>(word.front())) != 0)
    throw node.error("unknown rings '" + word + "'; use auto or a number of rings");
  count_ = static_cast<int>(node.as_int(Range{1, 1000}));
  place_ = node;
}

void RingSetting::check(const CyclicTaskGraph& graph) const {
  if (!is_count()) return;
  const Collective* any = nullptr;
  for (const Task& task : graph.tasks()) {
    const auto* collective = std::get_if<Collective>(&task.work);
    if (collective == nullptr) continue;
    if (has_rings(collective->algorithm, collective->op) && !collective->measured) return;
    any = collective;
  }
  if (any == nullptr) return;
  if (any->measured)
    throw place_->error(
        "nothing of a collective with a measured time is simulated; leave rings or "
        "calibration out");
  throw place_->error(std::string(to_string(any->algorithm)) +
                      " has no rings; leave rings out, or use algorithm ring, "
                      "multi_ring or hierarchical");
}

}  // namespace epocast
