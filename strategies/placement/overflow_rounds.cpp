#include "strategies/placement/overflow_rounds.hpp"

#include <algorithm>

namespace epocast {

OverflowResult overflow_rounds(const PlacementGraph& graph, const PlacementMachine& machine,
                               const ReplayOptions& options, Placement& placement, int most_rounds,
                               const std::function<bool(const OverflowState&)>& round) {
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  const std::vector<std::vector<std::uint32_t>> members = group_members(graph);
  const Placement before = placement;
  OverflowResult out;
  for (out.rounds = 0; out.rounds <= most_rounds; ++out.rounds) {
    const ReplayResult times = replay(graph, machine, placement, options);
    const std::vector<Residence> all = residences(graph, placement, times);
    double peak = 0;
    for (const MemoryPeak& p : memory_peaks(all, machine.devices)) peak = std::max(peak, p.bytes);
    out.fits = peak <= machine.memory;
    if (out.fits || out.rounds == most_rounds || !round({transfer, members, times, all, peak})) break;
  }
  for (std::size_t n = 0; n < before.size(); ++n)
    if (before[n] != placement[n]) ++out.moved_nodes;
  return out;
}

}  // namespace epocast
