#pragma once
// What to do about a mesh whose tensor axis crosses slow links.

#include <optional>
#include <string>
#include <vector>

#include "experiments/study_change.hpp"
#include "sim/cluster.hpp"

namespace epocast {

/// Of a study whose teams along strategy.mesh.tensor have devices in several nodes: the mesh that keeps them in one, by
/// another order of axes or, if a node has fewer devices than a team, by teams as large as nodes. None if there is
/// nothing to change.
std::optional<StudyChange> mesh_change(const ConfigNode& study, const Cluster& cluster,
                                       const std::vector<DeviceId>& workers);

/// "" if the change would not pay: both iterations are in seconds.
std::string mesh_advice(double iteration, const Remedy& change);

}  // namespace epocast
