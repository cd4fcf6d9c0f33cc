#include "costmodels/measured_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "sim/data_file.hpp"

namespace epocast {
namespace {

CollectiveScope read_scope(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word == "everywhere") return CollectiveScope::everywhere;
  if (word == "within_node") return CollectiveScope::within_node;
  if (word == "across_nodes") return CollectiveScope::across_nodes;
  throw node.error("unknown scope '" + word + "'" + name_hint(word, {"everywhere", "within_node", "across_nodes"}));
}

MeasuredCollectives read_one(const ConfigNode& node, const std::filesystem::path& data_dir) {
  const ConfigNode name = node.is_map() ? node.at("name") : node;
  const auto file = find_data_file(name, {"calibration", data_dir / "costmodels" / "calibrations", ".yaml"});
  const bool is_map = node.is_map();
  const std::string library = is_map ? node.get("library", "") : "";
  const CollectiveScope scope =
      is_map && node.has("where") ? read_scope(node.at("where")) : CollectiveScope::everywhere;
  const ConfigNode root = ConfigNode::load_file(file);
  if (root.is_map() && root.has("calibration") && root.at("calibration").as_string() != "network")
    throw name.error(
        fmt::format("'{}' is a {} calibration, not a network calibration as `epocast calibrate network` writes",
                    name.as_string(), root.at("calibration").as_string()));
  NetworkCalibration calibration = read_network_calibration(root);
  std::vector<std::string> libraries;
  for (const NetworkFit& fit : calibration.fits)
    if (std::ranges::find(libraries, fit.library) == libraries.end()) libraries.push_back(fit.library);
  if (!library.empty() && std::ranges::find(libraries, library) == libraries.end())
    throw node.at("library").error("calibration '" + name.as_string() + "' has no library '" + library + "'" +
                                   name_hint(library, libraries));
  return {std::move(calibration), name.as_string(), library, scope, name};
}

}  // namespace

MeasuredCollectives::MeasuredCollectives(NetworkCalibration calibration, std::string name, std::string library,
                                         CollectiveScope scope, ConfigNode place)
    : calibration_(std::move(calibration)),
      name_(std::move(name)),
      library_(std::move(library)),
      scope_(scope),
      place_(std::move(place)) {}

const NetworkFit* MeasuredCollectives::find(CollectiveOp op) const {
  const NetworkFit* found = nullptr;
  std::vector<std::string> libraries;
  for (const NetworkFit& fit : calibration_.fits) {
    if (fit.op != op || (!library_.empty() && fit.library != library_)) continue;
    libraries.push_back(fit.library);
    if (found == nullptr) found = &fit;
  }
  if (libraries.size() > 1)
    throw place_.error(
        fmt::format("calibration '{}' has {} times of several libraries: {}; choose one, as in "
                    "`calibration: {{name: {}, library: {}}}`",
                    name_, to_string(op), fmt::join(libraries, ", "), name_, libraries.front()));
  return found;
}

MeasuredCollectives::Source MeasuredCollectives::source(CollectiveOp op) const {
  if (const NetworkFit* fit = find(op)) return {{fit}, 1};
  if (op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_gather)
    if (const NetworkFit* whole = find(CollectiveOp::all_reduce)) return {{whole}, 0.5};
  if (op == CollectiveOp::all_reduce) {
    const NetworkFit* first = find(CollectiveOp::reduce_scatter);
    const NetworkFit* second = find(CollectiveOp::all_gather);
    if (first != nullptr && second != nullptr) return {{first, second}, 1};
  }
  std::set<std::string> known;
  for (const NetworkFit& fit : calibration_.fits) known.insert(to_string(fit.op));
  throw place_.error(
      fmt::format("calibration '{}' has no times of {}, which the strategy needs, but of {}; measure it with `epocast "
                  "calibrate network`, or leave calibration out",
                  name_, to_string(op), fmt::join(known, ", ")));
}

Seconds MeasuredCollectives::time(CollectiveOp op, int ranks, double bytes, int nodes) const {
  const Source from = source(op);
  Seconds sum{0};
  for (const NetworkFit* fit : from.fits) sum += fit->time(ranks, std::max(bytes, 1.0), nodes);  // in ln bytes
  return from.share * sum;
}

bool MeasuredCollectives::has_collectives() const {
  return std::ranges::any_of(calibration_.fits, [](const NetworkFit& fit) { return fit.op != CollectiveOp::send; });
}

bool MeasuredCollectives::in_scope(const Group& group, const Cluster& cluster) const {
  if (!has_collectives()) return false;
  if (scope_ == CollectiveScope::everywhere) return true;
  const auto node = [&](DeviceId device) -> const std::string& {
    return cluster.devices[static_cast<std::size_t>(device)].node;
  };
  const bool within =
      std::ranges::all_of(group.devices, [&](DeviceId device) { return node(device) == node(group.devices.front()); });
  return within == (scope_ == CollectiveScope::within_node);
}

std::optional<Seconds> MeasuredCollectives::time(const Collective& collective, const Group& group,
                                                 const Cluster& cluster) const {
  if (!in_scope(group, cluster)) return std::nullopt;
  std::set<std::string> nodes;
  for (const DeviceId device : group.devices) nodes.insert(cluster.devices[static_cast<std::size_t>(device)].node);
  return time(collective.op, static_cast<int>(group.devices.size()), collective.bytes.value,
              static_cast<int>(nodes.size()));
}

std::optional<Seconds> MeasuredCollectives::message_time(double bytes, bool within_node) const {
  if (scope_ == (within_node ? CollectiveScope::across_nodes : CollectiveScope::within_node)) return std::nullopt;
  const NetworkFit* const fit = find(CollectiveOp::send);
  const int nodes = within_node ? 1 : 2;
  if (fit == nullptr || std::ranges::find(fit->points, nodes, &CollectiveTiming::nodes) == fit->points.end())
    return std::nullopt;
  return fit->time(2, std::max(bytes, 1.0), nodes);
}

std::vector<std::string> MeasuredCollectives::message_caveats(const CyclicTaskGraph& graph) const {
  const NetworkFit* const fit = find(CollectiveOp::send);
  if (fit == nullptr) return {};
  int all = 0, outside = 0;
  Bytes first;
  for (const Task& task : graph.tasks()) {
    const auto* transfer = std::get_if<Transfer>(&task.work);
    if (transfer == nullptr || (!transfer->measured.within_node && !transfer->measured.across_nodes)) continue;
    ++all;
    if (transfer->bytes.value > 0 && fit->extrapolates(2, transfer->bytes.value) && outside++ == 0)
      first = transfer->bytes;
  }
  if (outside == 0) return {};
  const auto [small, large] = std::ranges::minmax(fit->points, {}, &CollectiveTiming::bytes);
  return {fmt::format("{} of {} messages are extrapolated by calibration '{}', first one of {}; measured were {} to {}",
                      outside, all, name_, to_string(first), to_string(Bytes(small.bytes)),
                      to_string(Bytes(large.bytes)))};
}

std::vector<std::string> MeasuredCollectives::caveats(const CyclicTaskGraph& graph, const Cluster& cluster) const {
  std::set<CollectiveOp> derived;
  int all = 0, outside = 0;
  std::string first;
  for (const Task& task : graph.tasks()) {
    const auto* collective = std::get_if<Collective>(&task.work);
    if (collective == nullptr || !in_scope(graph.group(collective->group), cluster)) continue;
    ++all;
    const int ranks = static_cast<int>(graph.group(collective->group).devices.size());
    const Source from = source(collective->op);
    if (from.fits.front()->op != collective->op) derived.insert(collective->op);
    const auto out = std::ranges::find_if(
        from.fits, [&](const NetworkFit* fit) { return fit->extrapolates(ranks, collective->bytes.value); });
    if (out == from.fits.end()) continue;
    ++outside;
    if (!first.empty()) continue;
    const auto [small, large] = std::ranges::minmax((*out)->points, {}, &CollectiveTiming::bytes);
    const auto [few, many] = std::ranges::minmax((*out)->points, {}, &CollectiveTiming::ranks);
    first = fmt::format("{} of {} over {} ranks; measured were {} to {} and {} to {} ranks", to_string(collective->op),
                        to_string(collective->bytes), ranks, to_string(Bytes(small.bytes)),
                        to_string(Bytes(large.bytes)), few.ranks, many.ranks);
  }
  std::vector<std::string> out = message_caveats(graph);
  for (const CollectiveOp op : derived)
    out.push_back(fmt::format(
        "calibration '{}' has no {}; its time is derived{}", name_, to_string(op),
        op == CollectiveOp::all_reduce ? " from reduce_scatter and all_gather" : " as half of an all_reduce"));
  if (outside > 0)
    out.push_back(
        fmt::format("{} of {} collectives are extrapolated by calibration '{}', first {}", outside, all, name_, first));
  return out;
}

bool MeasuredCollectives::excludes(const MeasuredCollectives& other) const {
  const bool same =
      scope_ == other.scope_ || scope_ == CollectiveScope::everywhere || other.scope_ == CollectiveScope::everywhere;
  const bool messages = find(CollectiveOp::send) != nullptr && other.find(CollectiveOp::send) != nullptr;
  return same && (messages || (has_collectives() && other.has_collectives()));
}

std::vector<MeasuredCollectives> read_measured_collectives(const ConfigNode& node,
                                                           const std::filesystem::path& data_dir) {
  std::vector<MeasuredCollectives> out;
  if (!node.is_list()) {
    out.push_back(read_one(node, data_dir));
    return out;
  }
  for (const ConfigNode& item : node.items()) {
    out.push_back(read_one(item, data_dir));
    for (std::size_t i = 0; i + 1 < out.size(); ++i)
      if (out[i].excludes(out.back()))
        throw item.error(
            "two calibrations for the same groups; give one `where: within_node`, one `where: across_nodes`");
  }
  if (out.empty()) throw node.error("must be a name, {name: .., where: within_node}, or a list of such");
  return out;
}

}  // namespace epocast
