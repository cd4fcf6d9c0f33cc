#include "strategies/step/mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace epocast {

namespace {

const std::vector<std::string> kAxes{"pipeline", "data", "context", "expert", "tensor"};
/// Along which all parameters are the same, or those of experts.
const std::vector<std::string> kReplicas{"data", "context", "expert"}, kExpertReplicas{"data", "context"};

bool is_one_of(const std::string& axis, const std::vector<std::string>& axes) {
  return std::ranges::find(axes, axis) != axes.end();
}

}  // namespace

Mesh::Mesh(const ConfigNode& node) : node_(node) {
  for (const std::string& axis : node.keys()) {
    if (!is_one_of(axis, kAxes))
      throw node.at(axis).error(
          fmt::format("unknown axis '{}'{}; axes are {}", axis, name_hint(axis, kAxes), fmt::join(kAxes, ", ")));
    const ConfigNode extent = node.at(axis);
    const bool rest = axis == "data" && extent.is_scalar() && extent.as_string() == "rest";
    axes_.emplace_back(axis, rest ? kRest : static_cast<int>(extent.as_int(Range{1, 1e6})));
  }
}

/// Throws if an axis along which ranks differ in more lies between these. The stages' is none: see within_stage().
void Mesh::check_neighbours(const std::vector<std::string>& axes, const char* what) const {
  std::string last, between;  // of these; and since
  for (const auto& [name, extent] : axes_) {
    if (extent == 1 || name == "pipeline") continue;
    if (!is_one_of(name, axes)) {
      if (!last.empty()) between = name;
    } else {
      if (!between.empty())
        throw node_.at(between).error(
            fmt::format("ranks along {} and {} have {}, so these axes must be neighbours; "
                        "name {} before or after both",
                        last, name, what, between));
      last = name;
    }
  }
}

int Mesh::extent(const std::string& axis) const {
  for (const auto& [name, extent] : axes_)
    if (name == axis) return extent;
  return 1;
}

/// Of the axes that are not left open.
std::int64_t Mesh::size() const {
  std::int64_t out = 1;
  for (const auto& [name, extent] : axes_) out = std::min<std::int64_t>(out * std::max(extent, 1), 1 << 30);
  return out;
}

std::string Mesh::text() const {
  std::string out;
  for (const auto& [name, extent] : axes_)
    if (extent != kRest) out += fmt::format("{}{} {}", out.empty() ? "" : " x ", name, extent);
  return out;
}

Mesh Mesh::on(std::size_t workers) const {
  Mesh out = *this;
  const auto have = static_cast<std::int64_t>(workers);
  for (auto& [name, extent] : out.axes_) {
    if (extent != kRest) continue;
    if (have % size() != 0)
      throw node_.error(
          fmt::format("{} do not divide {} workers; set workers to a multiple of {}", text(), have, size()));
    extent = static_cast<int>(have / size());
  }
  if (out.size() != have)
    throw node_.error(fmt::format("{} make {} devices, but the study has {}; set workers to {}, or change an axis",
                                  text(), out.size(), have, out.size()));
  out.check_neighbours(kReplicas, "the same parameters");
  if (extent("expert") > 1) out.check_neighbours(kExpertReplicas, "the same experts");
  return out;
}

/// The axis that these, which are neighbours, are together. Numbers ranks in the order of all axes but the pipeline's.
Axis Mesh::within_stage(const std::vector<std::string>& axes) const {
  Axis out;
  std::uint32_t stride = 1;
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const auto& [name, extent] = axes_[a];
    const auto ranks = static_cast<std::uint32_t>(extent);
    if (is_one_of(name, axes) && ranks > 1) {
      if (out.extent == 1) out.stride = stride;
      out.extent *= ranks;
    }
    if (name != "pipeline") stride *= ranks;
  }
  return out;
}

std::vector<StageRanks> Mesh::stages(const std::vector<DeviceId>& workers) const {
  std::vector<StageRanks> stages(static_cast<std::size_t>(extent("pipeline")));
  for (StageRanks& stage : stages) {
    stage.replicas = within_stage(kReplicas);
    stage.expert_replicas = within_stage(kExpertReplicas);
    stage.context = within_stage({"context"});
    stage.expert = within_stage({"expert"});
    stage.tensor = within_stage({"tensor"});
  }
  std::size_t inner = 1;  // ranks of the axes that vary faster than the pipeline's
  for (std::size_t a = axes_.size(); a-- > 0 && axes_[a].first != "pipeline";)
    inner *= static_cast<std::size_t>(axes_[a].second);
  for (std::size_t w = 0; w < workers.size(); ++w) stages[w / inner % stages.size()].devices.push_back(workers[w]);
  return stages;
}

}  // namespace epocast
