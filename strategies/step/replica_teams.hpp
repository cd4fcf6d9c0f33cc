#pragma once
// The workers as teams whose devices have programs of their own: each team is a replica of the whole network.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"
#include "strategies/step/mesh.hpp"

namespace epocast {

class ReplicaTeams {
 public:
  /// All workers are one team.
  ReplicaTeams() = default;
  /// Neighbours are a team, as many as the option says.
  static ReplicaTeams of(const ConfigNode& devices);
  /// Those along the axis `tensor` are a team; those along `data` are replicas. Throws ConfigError for other axes
  /// longer than one, with `body` as what has no use for them.
  static ReplicaTeams along(const Mesh& mesh, const std::string& body);

  /// These throw ConfigError if the workers do not make teams.
  int devices(std::int64_t workers) const;  ///< of a team
  std::int64_t replicas(std::int64_t workers) const { return workers / devices(workers); }
  /// By device of a team: the workers that it is, one in each replica.
  std::vector<std::vector<DeviceId>> on(const std::vector<DeviceId>& workers) const;
  /// Names and extents of the grid, outermost first.
  std::vector<std::pair<std::string, int>> axes(std::int64_t workers) const;

 private:
  std::optional<ConfigNode> devices_;
  std::optional<Mesh> mesh_;
};

}  // namespace epocast
