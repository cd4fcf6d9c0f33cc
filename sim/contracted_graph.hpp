#pragma once
// A weighted graph without the vertices at which a cycle has no choice.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/cycle_ratio.hpp"

namespace epocast {

/// A best cycle of a graph is one of this one, too, which has fewer vertices. A vertex that one arc leaves, or one arc
/// reaches, is passed by: arcs through it become one, with the sum of weights and of lags. Of arcs between the same two
/// vertices with the same lag the heaviest is kept, and, where few arcs leave a vertex, none to which two others in a
/// row are an alternative, with as much weight and no more lag. A cycle that becomes an arc from a vertex to itself is
/// a loop: of those only the one with the most weight per lag is kept, beside the arcs.
class ContractedGraph {
 public:
  /// REQUIRES: as critical_cycle(). `arcs` is not copied and outlives this.
  ContractedGraph(std::size_t vertices, const std::vector<RatioArc>& arcs);

  /// What is left, in the order of the original vertices. One that leads nowhere has an arc of lag 1 to itself.
  std::size_t vertices() const { return vertices_; }
  const std::vector<RatioArc>& arcs() const { return arcs_; }

  /// Original arcs, in order; none of a vertex that leads nowhere.
  std::vector<std::size_t> way_of(std::size_t arc) const { return expand(ways_[arc]); }
  /// Those of the best loop; none if there is no loop.
  std::vector<std::size_t> loop() const { return expand(loop_); }

 private:
  /// An original arc or, from their number on, two ways one after the other.
  using Way = std::uint32_t;
  static constexpr Way kNoWay = static_cast<Way>(-1);
  struct Joined {
    RatioArc whole;
    Way first, second;
  };
  using Leaving = std::vector<std::uint32_t>;  ///< by vertex: its first way, in the order of by_vertex(); and the end
  enum class Direction { forwards, backwards };

  const RatioArc& arc(Way way) const {
    return way < originals_.size() ? originals_[way] : joined_[way - originals_.size()].whole;
  }
  Way join(Way first, Way second);
  std::vector<std::size_t> expand(Way way) const;

  /// Takes a way over, unless it is a loop.
  void add(Way way, std::vector<Way>& ways);
  /// Sorts ways by the vertex that they leave.
  Leaving by_vertex(std::vector<Way>& ways) const;
  void keep_heaviest(std::vector<Way>& ways) const;
  void leave_out_shortcuts(std::vector<Way>& ways) const;
  /// Passes by what has one way in this direction. Returns whether that was worth it.
  bool pass_by(Direction direction, std::vector<Way>& ways);

  std::size_t vertices_;
  const std::vector<RatioArc>& originals_;
  std::vector<Joined> joined_;
  Way loop_ = kNoWay;
  std::vector<RatioArc> arcs_;
  std::vector<Way> ways_;  ///< by arc
};

}  // namespace epocast
