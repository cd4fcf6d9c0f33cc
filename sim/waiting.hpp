#pragma once
// Who waits for a queue, and who is served first.

#include <cstdint>
#include <tuple>

#include "sim/compiled_graph.hpp"

namespace epocast {

/// A ready instance in line.
struct Waiting {
  int priority = 0;
  std::uint64_t iteration = 0;  ///< breaks ties among equal priorities
  std::uint64_t arrival = 0;
  Instance instance;
};

/// Whether `a` is served after `b`: by arrival, or by priority, iteration, arrival. Orders a std::priority_queue so
/// that its top is served next.
struct ServedLater {
  Discipline discipline = Discipline::fifo;

  bool operator()(const Waiting& a, const Waiting& b) const {
    if (discipline == Discipline::priority)
      return std::tie(a.priority, a.iteration, a.arrival) > std::tie(b.priority, b.iteration, b.arrival);
    return a.arrival > b.arrival;
  }
};

}  // namespace epocast
