#pragma once
// Which flows of a folded run stand for which: flows that start together and meet the same on their way move at one
// rate, so one of them stands for all.

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collective.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// Flows of one rate. Every link of an orbit carries the same number of them.
struct FlowClass {
  struct Crossing {
    std::uint32_t orbit = 0;
    double flows = 0;  ///< of the class, on each link of the orbit
  };
  std::vector<Crossing> crossings;  ///< of links that flows share
  double most = 0;                  ///< B/s that one flow can have at all
};

/// Classes of flows over orbits of links that no flow tells apart.
struct FlowClasses {
  std::vector<double> bandwidth;  ///< by orbit [B/s]
  std::vector<FlowClass> classes;
};

/// One flow of a set of flows that start at the same time.
struct SetFlow {
  int from = 0, to = 0;      ///< hosts
  double bytes = 1;          ///< for every byte that the set is started with
  std::uint32_t team = 0;    ///< of the ranks that wait for it
  bool within_node = false;  ///< of a message, whose delay may depend on it
};

/// Sets of flows that one event of a folded run starts, and the classes that they fall into.
///
/// Under max-min fairness two flows have one rate at all times if their links carry the same flows. So flows and links
/// are coloured: links by bandwidth, flows by their set and size at first; then links by the colours of the flows that
/// cross them and flows by those of their links, until nothing changes (colour refinement, also known as the coarsest
/// equitable partition: McKay 1981). Flows of one colour are a class, links of one colour an orbit, whichever sets are
/// under way.
class FlowSymmetry {
 public:
  /// What flows of one set and size that meet different things on their way do.
  enum class Pace {
    own,     ///< each moves at its rate
    slowest  ///< all move as the slowest of them: a set is one class, whatever its flows meet
  };

  explicit FlowSymmetry(SimEngine& engine, Pace pace = Pace::own) : engine_(engine), pace_(pace) {}

  /// Who waits for a flow to end.
  enum class Waits {
    rank,   ///< of each, some rank for itself
    team,   ///< of those of a team, all of its ranks: they may differ from each other, though not from other teams'
    nobody  ///< they are only counted
  };
  /// Adds a set; its number. REQUIRES: before refine().
  std::uint32_t add(std::vector<SetFlow> flows, Waits waits);

  /// Colours all. Returns false if in some set the ranks, or the teams, cannot stand for each other; at the slowest
  /// pace they always can, if links are shared in a way that is known.
  bool refine();

  /// Part of a set.
  struct Part {
    std::uint32_t flow_class = 0;
    double bytes = 1;  ///< for every byte that the set is started with
  };
  /// By set: the classes that it falls into. REQUIRES: refine() returned true.
  const std::vector<Part>& parts(std::uint32_t set) const { return sets_[set].parts; }
  const std::vector<SetFlow>& flows(std::uint32_t set) const { return sets_[set].flows; }
  std::size_t size() const { return sets_.size(); }
  const FlowClasses& classes() const { return classes_; }

 private:
  struct Set {
    std::vector<SetFlow> flows;
    Waits waits = Waits::rank;
    std::size_t first = 0;  ///< number of its first flow, of those that take time
    std::vector<Part> parts;
  };
  static constexpr std::uint32_t kNoOrbit = ~std::uint32_t{0};
  struct Orbits {
    std::vector<std::uint32_t> of_link;  ///< kNoOrbit: no flow meets another there
    std::vector<double> links;           ///< how many an orbit has
  };
  void colour_links();
  bool colour();
  bool teams_are_alike(const Set& set) const;
  Orbits number_orbits();
  void number_classes();

  SimEngine& engine_;
  Pace pace_;
  std::vector<Set> sets_;
  std::vector<const Route*> routes_;        ///< by flow; null: inside a host
  std::vector<std::uint64_t> flow_, link_;  ///< colours
  FlowClasses classes_;
};

}  // namespace epocast
