#pragma once
// The devices of a training step as a grid with named axes.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"
#include "strategies/step/exchange.hpp"

namespace epocast {

/// `mesh: {pipeline: 4, data: 16, tensor: 8}`: the last axis varies fastest, so that its teams are neighbours in the
/// workers' order. Axes that are left out have extent 1; `data: rest` takes what the others leave of the workers.
/// Samples are divided along data and expert, their positions along context: all three have the same parameters, but
/// for the experts.
class Mesh {
 public:
  /// Throws ConfigError for unknown axes and extents that are no counts.
  explicit Mesh(const ConfigNode& node);

  /// With nothing left open. Throws ConfigError if the grid has more or fewer places than there are workers, or if
  /// ranks with the same parameters are no axis of it.
  Mesh on(std::size_t workers) const;

  /// REQUIRES, for the data axis: nothing is left open.
  int extent(const std::string& axis) const;
  /// Among how many places of a stage the samples are divided.
  int shares() const { return extent("data") * extent("expert"); }
  /// Outermost first. REQUIRES: nothing is left open.
  const std::vector<std::pair<std::string, int>>& axes() const { return axes_; }
  /// What to call it: "pipeline 4 x data 16 x tensor 8".
  std::string text() const;

  /// Devices and axes of each stage. REQUIRES: as many workers as the grid has places.
  std::vector<StageRanks> stages(const std::vector<DeviceId>& workers) const;
  const ConfigNode& place() const { return node_; }

 private:
  static constexpr int kRest = 0;

  Axis within_stage(const std::vector<std::string>& axes) const;
  void check_neighbours(const std::vector<std::string>& axes, const char* what) const;
  std::int64_t size() const;

  ConfigNode node_;
  std::vector<std::pair<std::string, int>> axes_;  ///< outermost first
};

}  // namespace epocast
