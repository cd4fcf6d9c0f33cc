#pragma once
// Shortest routes over a network of hosts, switches and links.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace epocast {

/// What a zone with Dijkstra routing answers, at the cost of a few switches instead of the whole network: SimGrid goes
/// through every host of a pod for every host that sends.
///
/// A route has the fewest links. Of several, SimGrid's search takes points in the order of their distance, then of
/// their numbers, and the first to reach a point stays its predecessor: so from the target backwards, each time the
/// neighbour with the smallest number that is one step closer to the source.
class ShortestRoutes {
 public:
  struct Connection {
    std::uint32_t point = 0;
    int link = -1;
  };
  using Ways = std::vector<std::vector<Connection>>;  ///< by point

  /// Adds a connection that crosses `link`, in this direction only. `from`, `to`: small ids; here points are numbered
  /// as they are first mentioned, as SimGrid does.
  void connect(std::uint32_t from, std::uint32_t to, int link);

  /// Says that routes begin and end at this point. Nothing happens if it has no connection.
  void mark_end(std::uint32_t id);

  bool is_end(std::uint32_t point) const { return is_end_[point]; }
  const Ways& out() const { return out_; }
  const Ways& in() const { return in_; }

  /// The links from one point to another; none if there is no way, or one of the points is not known.
  /// REQUIRES: from != to.
  std::optional<std::vector<int>> find(std::uint32_t from, std::uint32_t to);

 private:
  /// When a point was met: in which search, and at which distance.
  using Stamp = std::uint64_t;
  Stamp stamp(std::uint32_t distance) const { return Stamp{searches_} << 32 | distance; }

  /// What a search from one end knows. It keeps its memory for the next.
  struct Side {
    std::vector<Stamp> reached;         ///< by point: when last
    std::vector<std::uint32_t> points;  ///< reached in this search, by distance
    std::vector<std::uint32_t> first;   ///< by distance: the first of them

    std::uint32_t depth() const { return static_cast<std::uint32_t>(first.size() - 1); }
    std::span<const std::uint32_t> step(std::uint32_t distance) const;
  };
  std::uint32_t point(std::uint32_t id);
  std::optional<std::uint32_t> number_of(std::uint32_t id) const;
  bool knows(const Side& side, std::uint32_t point) const { return side.reached[point] >> 32 == searches_; }
  void begin(Side& side, std::uint32_t point);
  /// Ways that expand() would look at: a switch of thousands of ports is better met from both sides than gone through.
  static std::size_t ways_on(std::span<const std::uint32_t> points, const Ways& ways);
  /// Goes one step further, and notes the points that it reached and the other side knows.
  void expand(Side& side, const Side& other, const Ways& ways);
  /// Of the points of `step` with that stamp, the smallest that leads to `to`.
  Connection step_back(std::uint32_t to, std::span<const std::uint32_t> step, const std::vector<Stamp>& stamps,
                       Stamp stamp) const;

  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  std::vector<std::uint32_t> number_;  ///< of a point, by its id
  Ways out_, in_;
  std::vector<bool> is_end_;  ///< by point
  std::uint32_t searches_ = 0;
  Side ahead_, back_;
  std::vector<std::uint32_t> meeting_;
  std::vector<Stamp> on_way_;  ///< by point: when last on a shortest way, and how far from its end
};

}  // namespace epocast
