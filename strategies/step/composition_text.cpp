#include "strategies/step/composition_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace epocast {

std::string text_of(const CompositionParts& parts) {
  std::vector<std::string> axes;
  for (const auto& [name, extent] : parts.mesh)
    if (extent > 1) axes.push_back(fmt::format("{}: {}", name, extent));
  const bool stages =
      std::ranges::any_of(parts.mesh, [](const auto& axis) { return axis.first == "pipeline" && axis.second > 1; });
  std::string schedule;
  if (parts.in_flight > 1)
    schedule = fmt::format(", schedule {} of {} batches in flight", parts.schedule, parts.in_flight);
  else if (stages || parts.micro_batches > 1)
    schedule = fmt::format(", schedule {} of {} micro-batch{}", parts.schedule, parts.micro_batches,
                           parts.micro_batches > 1 ? "es" : "");
  return fmt::format("mesh {{{}}}{}, body {}, synchronisation {}", fmt::join(axes, ", "), schedule,
                     parts.bodies.empty() ? "whole" : fmt::format("{}", fmt::join(parts.bodies, " and ")),
                     parts.synchronisation);
}

}  // namespace epocast
