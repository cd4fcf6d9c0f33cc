#include "sim/step_ends.hpp"

#include <algorithm>

namespace epocast {

EndsByName ends_by_name(const SimulatedStep& step) {
  EndsByName out;
  std::size_t instance = 0;
  for (std::uint32_t t = 0; t < step.graph.tasks().size(); ++t) {
    const Label& label = step.graph.tasks()[t].label;
    const int width = step.result.folded ? 1 : step.graph.width_of(TaskId(t));
    for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(width); ++r)
      out[{&label.operation.text(), &label.layer.text(), r, label.micro_batch >= 0}].push_back(
          step.result.ends[instance++]);
  }
  for (auto& [name, ends] : out) std::ranges::sort(ends);
  return out;
}

}  // namespace epocast
