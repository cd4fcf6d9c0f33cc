#pragma once
// Which iterations of which ranks are void because the others did not wait for them.

#include <cstdint>
#include <vector>

#include "sim/compiled_graph.hpp"

namespace epocast {

/// Remembers for each rank which iterations were found obsolete; everything that follows in them is void as well.
class VoidIterations {
 public:
  explicit VoidIterations(const CompiledGraph& graph);

  bool any() const { return !rules_.empty(); }

  /// Whether the instance's firing of `iteration` (from 0), whose turn has come, is void. `started(join)` is how many
  /// iterations a join has started.
  template <class Started>
  bool check(Instance i, std::int64_t iteration, Started started) {
    bool is_void = false;
    for (const std::uint32_t r : rules_of_[i.task]) {
      Rule& rule = rules_[r];
      if (rule.task == i.task && !contains(rule, i.rank, iteration) && obsolete(rule, iteration, started))
        add(rule, i.rank, iteration);
      is_void |= contains(rule, i.rank, iteration);
    }
    return is_void;
  }

  /// Whether the iteration was skipped: void from a task on that others of its rank follow.
  bool skipped(Instance i, std::int64_t iteration) const;
  /// Iterations that the rank has skipped.
  std::int64_t skipped(std::uint32_t rank) const { return rank < skips_.size() ? skips_[rank] : 0; }

 private:
  struct Rule {
    std::uint32_t task = 0;
    std::vector<std::uint32_t> joins;
    bool has_followers = false;
    std::vector<std::vector<bool>> is_void;  ///< by rank, by iteration as far as known
  };
  template <class Started>
  static bool obsolete(const Rule& rule, std::int64_t iteration, Started started) {
    for (const std::uint32_t join : rule.joins)
      if (started(join) <= iteration) return false;
    return true;
  }
  static bool contains(const Rule& rule, std::uint32_t rank, std::int64_t iteration) {
    const auto& known = rule.is_void[rank];
    return static_cast<std::size_t>(iteration) < known.size() && known[static_cast<std::size_t>(iteration)];
  }
  void add(Rule& rule, std::uint32_t rank, std::int64_t iteration);

  std::vector<Rule> rules_;
  std::vector<std::vector<std::uint32_t>> rules_of_;  ///< by task: rules that may make it void
  std::vector<std::int64_t> skips_;                   ///< by rank
};

}  // namespace epocast
