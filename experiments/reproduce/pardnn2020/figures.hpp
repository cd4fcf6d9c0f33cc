#pragma once
// Figures 4.2 and 4.3 of Qararyah 2020, whose weights are in the images only: graphs made up so that what their
// captions say comes out.

#include "strategies/placement/placement_graph.hpp"

namespace epocast::pardnn2020 {

/// Units of time: ticks.
inline constexpr Ticks kFigureUnit = 1'000'000;

/// Twelve nodes, A to L, on two devices: slicing finds A B E G I K L, C F, J, D, H in this order; J's 5 units of
/// transfers exceed the work within its span; level-aware balancing comes to a makespan of 13, guided balancing to 15.
PlacementGraph figure_4_2_graph();
PlacementMachine figure_4_2_machine();
struct Figure42 {
  double level_aware = 0, guided = 0;  ///< makespans [units]
};
Figure42 figure_4_2();

/// Seven nodes, A to G, on one device: the most memory of the schedule A C D E F B G, or of A B C D E F G.
PlacementGraph figure_4_3_graph();
double figure_4_3_peak(bool first_schedule);

}  // namespace epocast::pardnn2020
