#include "strategies/step/replica_teams.hpp"

#include <fmt/format.h>

#include "sim/words.hpp"

namespace epocast {

ReplicaTeams ReplicaTeams::of(const ConfigNode& devices) {
  devices.as_int(Range{1, 1e6});
  ReplicaTeams teams;
  teams.devices_ = devices;
  return teams;
}

ReplicaTeams ReplicaTeams::along(const Mesh& mesh, const std::string& body) {
  for (const char* axis : {"pipeline", "context", "expert"})
    if (mesh.extent(axis) > 1)
      throw mesh.place().at(axis).error(
          fmt::format("body {} says of every device what it does in the whole network, and has no use for this axis; "
                      "its devices are along tensor, replicas along data",
                      body));
  ReplicaTeams teams;
  teams.mesh_ = mesh;
  return teams;
}

int ReplicaTeams::devices(std::int64_t workers) const {
  if (mesh_) return mesh_->on(static_cast<std::size_t>(workers)).extent("tensor");
  if (!devices_) return static_cast<int>(workers);
  const std::int64_t devices = devices_->as_int();
  if (workers % devices != 0)
    throw devices_->error(fmt::format("{} cannot be divided into replicas of {}; use a divisor of {}",
                                      counted(workers, "worker"), counted(devices, "device"), workers));
  return static_cast<int>(devices);
}

std::vector<std::pair<std::string, int>> ReplicaTeams::axes(std::int64_t workers) const {
  if (mesh_) return mesh_->on(static_cast<std::size_t>(workers)).axes();
  return {{"data", static_cast<int>(replicas(workers))}, {"tensor", devices(workers)}};
}

std::vector<std::vector<DeviceId>> ReplicaTeams::on(const std::vector<DeviceId>& workers) const {
  const int extent = devices(static_cast<std::int64_t>(workers.size()));
  const Axis team = mesh_ ? mesh_->on(workers.size()).stages(workers).front().tensor
                          : Axis{.stride = 1, .extent = static_cast<std::uint32_t>(extent)};
  std::vector<std::vector<DeviceId>> places(static_cast<std::size_t>(extent));
  for (std::size_t w = 0; w < workers.size(); ++w)
    places[team.place_of(static_cast<std::uint32_t>(w))].push_back(workers[w]);
  return places;
}

}  // namespace epocast
