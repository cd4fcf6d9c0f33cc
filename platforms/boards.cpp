#include "platforms/boards.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace epocast {

std::vector<double> board_slowdown(const Cluster& cluster, std::span<const DeviceId> workers) {
  const auto has_board = [](const Device& device) { return !device.board.empty(); };
  if (std::ranges::none_of(cluster.devices, has_board)) return {};
  const auto device = [&](DeviceId id) -> const Device& { return cluster.devices[static_cast<std::size_t>(id)]; };
  const auto place = [&](DeviceId id) { return std::pair(device(id).node.text(), device(id).board.text()); };
  std::map<std::pair<std::string, std::string>, int> training;  // by node and board
  for (const DeviceId worker : workers) ++training[place(worker)];
  std::vector<double> slowdown(cluster.devices.size(), 1);
  for (const DeviceId worker : workers)
    if (has_board(device(worker)) && training[place(worker)] > 1)
      slowdown[static_cast<std::size_t>(worker)] = 1 / device(worker).shared_speed;
  return slowdown;
}

}  // namespace epocast
