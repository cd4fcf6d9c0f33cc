#include "platforms/platform_loader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "platforms/cluster_generator.hpp"
#include "platforms/network_graph_reader.hpp"
#include "platforms/reachability.hpp"
#include "platforms/topology.hpp"
#include "platforms/units.hpp"
#include "sim/data_file.hpp"
#include "sim/error.hpp"

namespace epocast {

namespace {

class DeviceReader {
 public:
  DeviceReader(const XmlSource& xml, const Topology& topology) : xml_(xml), topology_(topology) {}

  Device read(const Point& host) {
    if (!is_like_template(host)) {
      template_ = read_figures(host);
      template_host_ = &host;
    }
    Device device = template_;
    device.name = host.name;
    if (host.node != template_host_->node) {
      device.node = own_value(host, "epocast.node");
      device.board = own_value(host, "epocast.board");
    }
    if (device.node.empty()) device.node = host.name;
    return device;
  }

 private:
  /// Whether the host differs from the one whose figures were read last in nothing but its name, node and board.
  bool is_like_template(const Point& host) const {
    if (template_host_ == nullptr || host.zone != template_host_->zone) return false;
    if (host.node == template_host_->node) return true;  // of one cluster
    for (const char* attribute : {"speed", "core"})
      if (std::string_view(host.node.attribute(attribute).value()) != template_host_->node.attribute(attribute).value())
        return false;
    return std::ranges::equal(own_properties(host), own_properties(*template_host_), [](const auto& a, const auto& b) {
      return a.first == b.first &&
             (a.first == "epocast.node" || a.first == "epocast.board" || a.second.value == b.second.value);
    });
  }

  const Properties& own_properties(const Point& host) const {
    static const Properties none;
    const auto own = topology_.host_properties.find(host.node);
    return own == topology_.host_properties.end() ? none : own->second;
  }

  std::string own_value(const Point& host, const std::string& key) const {
    const Property* const found = find(host, key);
    return found == nullptr ? "" : found->value;
  }

  const Property* find(const Point& host, const std::string& key) const {
    if (const auto own = topology_.host_properties.find(host.node); own != topology_.host_properties.end())
      if (const auto found = own->second.find(key); found != own->second.end()) return &found->second;
    for (int z = host.zone; z >= 0; z = topology_.zones[z].parent)
      if (const auto found = topology_.zones[z].properties.find(key); found != topology_.zones[z].properties.end())
        return &found->second;
    return nullptr;
  }

  const Property& require(const Point& host, const std::string& key, const std::string& example) const {
    if (const Property* found = find(host, key)) return *found;
    xml_.fail(host.node,
              fmt::format("missing property {0}: add <prop id=\"{0}\" value=\"{1}\"/> here or to a zone around it", key,
                          example));
  }

  // A quantity between min and max (SI).
  template <class Parse>
  auto quantity(const Property& property, Parse parse, double min, double max) const {
    decltype(parse("")) value;
    try {
      value = parse(property.value);
    } catch (const std::invalid_argument& error) {
      xml_.fail(property.node, "value", error.what());
    }
    if (!(value.value > 0)) xml_.fail(property.node, "value", "must be above zero, got " + quote(property.value));
    if (value.value < min || value.value > max)
      xml_.fail(property.node, "value",
                fmt::format("{} is beyond reason (accepted: {} to {})", quote(property.value),
                            to_string(decltype(value)(min)), to_string(decltype(value)(max))));
    return value;
  }

  int count(const Property& property) const {
    int value = 0;
    const std::string& text = property.value;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size() || value < 1 || value > 1'000'000)
      xml_.fail(property.node, "value", "expected a whole number from 1 to 1000000, got " + quote(text));
    return value;
  }

  double number(const Property& property, double min, double max) const {
    double value = 0;
    const std::string& text = property.value;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size() || !(value >= min && value <= max))
      xml_.fail(property.node, "value",
                fmt::format("expected a number from {:g} to {:g}, got {}", min, max, quote(text)));
    return value;
  }

  /// What goes with the kind of device: a host of another kind than its zone's does not have it from there.
  const Property* find_of_kind(const Point& host, const std::string& key) const {
    const auto own = topology_.host_properties.find(host.node);
    const bool of_own_kind = own != topology_.host_properties.end() && own->second.contains("epocast.device_model");
    return of_own_kind && !own->second.contains(key) ? nullptr : find(host, key);
  }

  Device read_figures(const Point& host) const {
    Device device;
    device.model = require(host, "epocast.device_model", "2x Intel Xeon Platinum 8180").value;
    device.memory = quantity(require(host, "epocast.memory", "384 GB"), parse_bytes, 1e6, 1e16);
    device.memory_bandwidth =
        quantity(require(host, "epocast.memory_bandwidth", "255.9 GB/s"), parse_bytes_per_second, 1e6, 1e16);
    device.cores = host.node.attribute("core").as_int(1);
    device.peak_rate = device.cores * parse_simgrid_speed(host.node.attribute("speed").value());
    if (const Property* given = find(host, "epocast.peak_rate")) {
      const FlopPerSecond rate = quantity(*given, parse_flop_per_second, 1e3, 1e21);
      if (std::abs(rate.value - device.peak_rate.value) > 1e-6 * rate.value)
        xml_.fail(given->node, "value",
                  fmt::format("{} contradicts speed=\"{}\" core=\"{}\" of {}, which make {}; give one number only",
                              quote(given->value), host.node.attribute("speed").value(), device.cores, quote(host.name),
                              to_string(device.peak_rate)));
      device.peak_rate = rate;
    }
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16, Precision::fp8})
      if (const Property* rate = find_of_kind(host, std::string("epocast.peak_rate_") + to_string(precision)))
        device.other_rates[precision] = quantity(*rate, parse_flop_per_second, 1e3, 1e21);
    if (const Property* like = find_of_kind(host, "epocast.kernels_like")) device.kernels_like = like->value;
    if (const Property* products = find_of_kind(host, "epocast.product_share"))
      device.product_share = number(*products, 0.1, 10);
    if (const Property* cores = find(host, "epocast.cores")) device.cores = count(*cores);
    if (const Property* node = find(host, "epocast.node")) device.node = node->value;
    if (const Property* board = find(host, "epocast.board")) device.board = board->value;
    if (const Property* speed = find(host, "epocast.shared_speed")) device.shared_speed = number(*speed, 0.01, 1);
    if (const Property* trains = find(host, "epocast.trains")) {
      if (trains->value != "true" && trains->value != "false")
        xml_.fail(trains->node, "value", "expected true or false, got " + quote(trains->value));
      device.trains = trains->value == "true";
    }
    return device;
  }

  const XmlSource& xml_;
  const Topology& topology_;
  Device template_;
  const Point* template_host_ = nullptr;
};

// The first text given for a key stands alone; one that differs, deeper in the file, says where it holds.
void add_sources(const Properties& properties, const std::string& place, std::map<std::string, std::string>& sources) {
  for (const auto& [id, property] : properties) {
    if (!id.starts_with("source.")) continue;
    const std::string key = id.substr(std::string("source.").size());
    if (const auto [found, fresh] = sources.emplace(key, property.value); !fresh && found->second != property.value)
      sources.emplace(key + " (" + place + ")", property.value);
  }
}

}  // namespace

Cluster parse_platform(std::string_view text, const std::string& name) {
  const XmlSource xml(std::string(text), name);
  const Topology topology = read_topology(xml);
  check_reachability(xml, topology);

  Cluster cluster;
  cluster.name = std::filesystem::path(name).stem().string();
  cluster.platform_file = name;
  const Properties& outer = topology.zones.front().properties;
  if (const auto found = outer.find("epocast.description"); found != outer.end())
    cluster.description = found->second.value;

  DeviceReader reader(xml, topology);
  for (const Point& point : topology.points) {
    if (!point.is_host) continue;
    const Device device = reader.read(point);
    if (device.trains && !cluster.devices.empty() && !cluster.devices.back().trains)
      xml.fail(point.node,
               fmt::format("host {} trains, and one before it does not; hosts with epocast.trains=\"false\" go last",
                           quote(device.name)));
    cluster.devices.push_back(device);
  }
  if (!cluster.devices.front().trains)
    xml.fail(std::ranges::find_if(topology.points, &Point::is_host)->node,
             "no host of this platform trains; leave out epocast.trains of those that do");

  for (const Zone& zone : topology.zones) add_sources(zone.properties, zone.name, cluster.sources);
  for (const Point& point : topology.points)
    if (const auto found = topology.host_properties.find(point.node); found != topology.host_properties.end())
      add_sources(found->second, point.name, cluster.sources);
  for (const auto& [key, property] : topology.link_sources) cluster.sources.emplace(key, property.value);
  cluster.network = read_network_graph(xml, topology);
  return cluster;
}

Cluster load_platform(const std::filesystem::path& file) {
  return parse_platform(XmlSource::read_file(file), file.string());
}

namespace {

/// Platforms in XML are complete; only those that a cluster describes have keys that a study can set.
void refuse_platform_file(const ConfigNode& name, const std::filesystem::path& folder) {
  const std::string text = name.as_string();
  std::error_code ignored;  // of a name that no file can have
  if (text.find('/') != std::string::npos || std::filesystem::exists(folder / "clusters" / (text + ".yaml"), ignored) ||
      !std::filesystem::exists(folder / (text + ".xml"), ignored))
    return;
  throw name.error("'" + text +
                   "' is a platform file, of which a study can set nothing: name it alone, as in `platform: " + text +
                   "`, or take a cluster" + name_hint(text, data_file_names(folder / "clusters", ".yaml")));
}

/// The value of a key of a cluster's description after a change. Of a map only what is given changes; null takes it
/// away.
ConfigNode changed(const ConfigNode& description, const std::string& key, const ConfigNode& change) {
  if (!change.is_map() || !description.has(key) || !description.at(key).is_map()) return change;
  ConfigNode out = description.at(key);
  for (const std::string& part : change.keys())
    out = change.at(part).is_null() ? out.without(part) : out.with(part, change.at(part));
  return out;
}

}  // namespace

Cluster load_platform_named(const ConfigNode& value, const std::filesystem::path& data_dir) {
  const std::filesystem::path folder = data_dir / "platforms";
  const auto cluster = [&](const ConfigNode& description) {
    return load_cluster(description, ConfigNode::load_file(folder / "devices.yaml"));
  };
  if (value.is_map()) {
    if (!value.has("name")) return cluster(value);
    const DataFileKind kind{"cluster", folder / "clusters", ".yaml"};
    refuse_platform_file(value.at("name"), folder);
    ConfigNode description = ConfigNode::load_file(find_data_file(value.at("name"), kind));
    for (const std::string& key : value.keys())
      if (key != "name") description = description.with(key, changed(description, key, value.at(key)));
    value.mark_all_read();  // what is wrong with a change shows in the description
    return cluster(description);
  }
  const std::string name = value.as_string();
  if (name.ends_with(".yaml"))
    return cluster(ConfigNode::load_file(find_data_file(value, {"cluster", folder / "clusters", ".yaml"})));
  std::error_code ignored;  // of a name that no file can have
  if (const auto file = folder / "clusters" / (name + ".yaml"); std::filesystem::exists(file, ignored))
    return cluster(ConfigNode::load_file(file));
  return load_platform(
      find_data_file(value, {"platform", folder, ".xml", data_file_names(folder / "clusters", ".yaml")}));
}

std::vector<PlatformInfo> list_clusters(const std::filesystem::path& folder) {
  std::vector<PlatformInfo> out;
  const ConfigNode devices = ConfigNode::load_file(folder / "devices.yaml");
  for (const std::string& name : data_file_names(folder / "clusters", ".yaml")) {
    const Cluster cluster = load_cluster(ConfigNode::load_file(folder / "clusters" / (name + ".yaml")), devices);
    out.push_back({name, cluster.description, cluster.trainers(), cluster.devices.front().model, ""});
  }
  return out;
}

std::vector<std::pair<std::string, Device>> list_devices(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, Device>> out;
  const ConfigNode devices = ConfigNode::load_file(folder / "devices.yaml");
  for (const std::string& kind : devices.keys()) {
    const std::string alone =
        fmt::format("{{cluster: {}, devices: {{kind: {}, per_node: 1}}, inside: {{rate: 1 GB/s}}}}", kind, kind);
    out.emplace_back(kind, load_cluster(ConfigNode::load_text(alone, kind), devices).devices.front());
  }
  return out;
}

std::vector<PlatformInfo> list_platforms(const std::filesystem::path& folder) {
  std::vector<PlatformInfo> out;
  for (const std::string& name : data_file_names(folder, ".xml")) {
    PlatformInfo info;
    info.name = name;
    try {
      const Cluster cluster = load_platform(folder / (name + ".xml"));
      info.description = cluster.description;
      info.devices = cluster.trainers();
      info.device_model = cluster.devices.front().model;
    } catch (const ConfigError& error) {
      info.problem = error.what();
    }
    out.push_back(std::move(info));
  }
  return out;
}

}  // namespace epocast
