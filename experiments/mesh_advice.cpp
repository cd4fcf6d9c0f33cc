#include "experiments/mesh_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/axis.hpp"

namespace epocast {
namespace {

struct MeshAxis {
  std::string name;
  std::int64_t extent = 1;
};

/// As the study names them, the rest filled in. Empty for no mesh, or one that is not for so many workers.
std::vector<MeshAxis> axes_of(const ConfigNode& study, std::int64_t workers) {
  if (!study.has("strategy") || !study.at("strategy").is_map() || !study.at("strategy").has("mesh")) return {};
  const ConfigNode mesh = study.at("strategy").at("mesh");
  std::vector<MeshAxis> axes;
  std::int64_t known = 1;
  MeshAxis* rest = nullptr;
  axes.reserve(mesh.keys().size());
  for (const std::string& name : mesh.keys()) {
    MeshAxis& axis = axes.emplace_back(MeshAxis{name});
    if (mesh.at(name).as_string() == "rest")
      rest = &axis;
    else
      known *= axis.extent = mesh.at(name).as_int(Range{1, 1e6});
  }
  if (rest != nullptr) known *= rest->extent = workers / known;
  return known == workers ? axes : std::vector<MeshAxis>{};
}

bool teams_cross_nodes(const std::vector<MeshAxis>& axes, const Cluster& cluster,
                       const std::vector<DeviceId>& workers) {
  std::uint32_t stride = 1;
  for (std::size_t a = axes.size(); a-- > 0 && axes[a].name != "tensor";)
    stride *= static_cast<std::uint32_t>(axes[a].extent);
  const auto tensor = std::ranges::find(axes, "tensor", &MeshAxis::name);
  const Axis axis{.stride = stride, .extent = static_cast<std::uint32_t>(tensor->extent)};
  const auto node = [&](std::uint32_t rank) -> const std::string& {
    return cluster.devices[static_cast<std::size_t>(workers[rank])].node;
  };
  for (std::uint32_t rank = 0; rank < workers.size(); ++rank)
    if (node(rank) != node(axis.first_rank(axis.team_of(rank)))) return true;
  return false;
}

/// On the first worker's node.
std::int64_t workers_of_a_node(const Cluster& cluster, const std::vector<DeviceId>& workers) {
  const auto node = [&](DeviceId d) -> const std::string& { return cluster.devices[static_cast<std::size_t>(d)].node; };
  return std::ranges::count_if(workers, [&](DeviceId d) { return node(d) == node(workers.front()); });
}

}  // namespace

std::optional<StudyChange> mesh_change(const ConfigNode& study, const Cluster& cluster,
                                       const std::vector<DeviceId>& workers) {
  std::vector<MeshAxis> axes = axes_of(study, static_cast<std::int64_t>(workers.size()));
  const auto axis = [&](const char* name) { return std::ranges::find(axes, name, &MeshAxis::name); };
  if (axis("tensor") == axes.end() || axis("tensor")->extent < 2 || !teams_cross_nodes(axes, cluster, workers))
    return {};
  const std::int64_t together = std::gcd(axis("tensor")->extent, workers_of_a_node(cluster, workers));
  if (together < 2) return {};
  const std::int64_t more = axis("tensor")->extent / together;
  if (more > 1 && axis("data") == axes.end()) return {};  // a batch is not divided
  if (more > 1) axis("data")->extent *= more;
  axis("tensor")->extent = together;
  std::rotate(axis("tensor"), axis("tensor") + 1, axes.end());  // last: neighbours
  if (teams_cross_nodes(axes, cluster, workers)) return {};
  std::vector<std::string> text;
  for (const MeshAxis& one : axes) text.push_back(fmt::format("{}: {}", one.name, one.extent));
  const std::string mesh = fmt::format("{{{}}}", fmt::join(text, ", "));
  return StudyChange{"mesh: " + mesh, {{"strategy.mesh", ConfigNode::load_text(mesh, study.where().file)}}};
}

std::string mesh_advice(double iteration, const Remedy& change) {
  constexpr double kWorthAWord = 0.01;
  if (change.iteration_s > (1 - kWorthAWord) * iteration) return "";
  return fmt::format(
      "strategy.mesh: teams along tensor cross nodes, whose links carry all their exchanges: an iteration takes {}; "
      "with "
      "{} it would take {}",
      to_string(Seconds(iteration)), change.text, to_string(Seconds(change.iteration_s)));
}

}  // namespace epocast
