#pragma once
// ParDNN's second step as it is written (Qararyah 2020, section 4.1.2): the graph is gone through from the sink; nodes
// that were passed are kept in heaps; where a device overflows, one node after the other leaves it.
//
// A node's potential at a moment is what the outputs occupy that it reads, that were made before, and of which it is
// the last reader on its device, and its own output while it runs (table 4.2); its cost is eq. 4.5. One heap is ordered
// by cost over potential; a second, by cost, is asked for nodes that end the overflow by themselves; of both the
// cheaper node is taken. It goes where there is room for it, first to the device with which it exchanges most, and
// stays there. What it reads may be read by others before it, so that nodes leave in pairs and more where an output has
// several readers: more moves than resolve_overflow() makes.
//
// Where the text is silent: a variable is passed last, and so moves only if it can, with its group, for its own bytes;
// a move must not make another device overflow at any time; the emulator runs again after the pass, and the pass again
// while that helps.

#include "strategies/placement/overflow.hpp"

namespace epocast {

/// Moves nodes of `placement`. REQUIRES machine.memory > 0. O(V log V) a pass, times the readers of what moves.
OverflowResult resolve_overflow_as_written(const PlacementGraph& graph, const PlacementMachine& machine,
                                           const ReplayOptions& options, Placement& placement, int most_passes = 4);

}  // namespace epocast
