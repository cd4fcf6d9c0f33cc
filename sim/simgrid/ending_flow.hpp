#pragma once
// Flows that share something equally, in the order in which they end.

#include <cstdint>

namespace epocast {

/// In a std::priority_queue the flow that ends first is on top; of several the one that began first.
struct EndingFlow {
  double end;  ///< what each of the flows has moved by then, counted from one moment for all
  std::uint64_t number;
  std::uint64_t token;
  bool operator<(const EndingFlow& other) const { return end != other.end ? end > other.end : number > other.number; }
};

}  // namespace epocast
