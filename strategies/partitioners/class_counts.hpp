#pragma once
// A partition as counts: how many vertices of each class are in each part. Its cost follows from the counts alone, and
// a move of any number of equal vertices updates it in time proportional to the families they belong to.

#include <vector>

#include "strategies/partitioners/vertex_classes.hpp"

namespace epocast {

/// Which volume counts cost. `gather_broadcast` is Eserol 2019's accounting (see communication_volume.hpp).
enum class CountObjective { connectivity, cut_net, gather_broadcast };

class ClassCounts {
 public:
  /// `gather` [cost per vertex, by class]: what it costs to bring a vertex's result to the part where its layer is put
  /// together; for gather_broadcast only. All vertices start in part 0.
  ClassCounts(const VertexClasses& classes, int parts, CountObjective objective, std::vector<double> gather = {});

  int parts() const { return parts_; }
  int classes() const { return static_cast<int>(classes_->classes.size()); }
  int count(int of_class, int part) const { return count_[at(of_class, part)]; }
  double cost() const { return cost_; }
  double load(int part) const { return load_[static_cast<std::size_t>(part)]; }
  double weight(int of_class) const { return classes_->classes[static_cast<std::size_t>(of_class)].weight; }

  /// Classes with vertices in a part, and parts with vertices of a class, in no order that means anything.
  const std::vector<int>& classes_in(int part) const { return classes_in_[static_cast<std::size_t>(part)]; }
  const std::vector<int>& parts_with(int of_class) const { return parts_with_[static_cast<std::size_t>(of_class)]; }
  /// Classes that share a family with this one.
  const std::vector<int>& neighbours(int of_class) const { return neighbours_[static_cast<std::size_t>(of_class)]; }

  /// Moves `number` vertices of a class. REQUIRES 0 < number <= count(of_class, from), from != to.
  void move(int of_class, int number, int from, int to);

  /// Part of every vertex of the hypergraph: members of a class in order, parts in order.
  Partition partition() const;
  /// Sets all counts to those of a partition.
  void assign(const Partition& partition);

 private:
  std::size_t at(int row, int part) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(part);
  }
  double family_cost(int family) const;
  void set_present(int of_class, int part, bool present);

  const VertexClasses* classes_;
  int parts_;
  CountObjective objective_;
  std::vector<double> gather_;
  std::vector<std::vector<int>> read_in_, source_of_;  ///< by class: families
  std::vector<std::vector<int>> neighbours_;
  std::vector<int> count_;     ///< [class][part]
  std::vector<int> readers_;   ///< [family][part]: vertices of the classes `all`
  std::vector<int> spread_;    ///< [family]: parts with readers
  std::vector<long> at_home_;  ///< [family]: vertices of the source in a part with readers
  std::vector<double> family_cost_;
  double cost_ = 0;
  std::vector<double> load_;
  std::vector<std::vector<int>> classes_in_, parts_with_;
  std::vector<int> place_in_part_, place_in_class_;  ///< [class][part]: positions in the lists above
};

}  // namespace epocast
