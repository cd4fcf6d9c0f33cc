#pragma once
// collective.rings: how many rings a ring collective is divided over.

#include <optional>

#include "sim/config.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// `auto`, the default, or a count.
class RingSetting {
 public:
  RingSetting() = default;
  /// Reads the key. Throws ConfigError.
  explicit RingSetting(const ConfigNode& node);

  bool is_count() const { return place_.has_value(); }
  int count() const { return count_; }  ///< 0: auto
  /// Throws ConfigError if a count is given, the graph has collectives, and none of them has rings.
  void check(const CyclicTaskGraph& graph) const;
  /// A problem of the count, at its place in the study. REQUIRES: is_count().
  ConfigError error(const std::string& problem) const { return place_->error(problem + "; use fewer, or auto"); }

 private:
  int count_ = 0;                    ///< 0: auto
  std::optional<ConfigNode> place_;  ///< of a count
};

}  // namespace epocast
