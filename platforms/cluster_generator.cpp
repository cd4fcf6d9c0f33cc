#include "platforms/cluster_generator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "platforms/platform_loader.hpp"
#include "sim/file_output.hpp"
#include "sim/fingerprint.hpp"
#include "sim/input_record.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr Range kRate{1e6, 1e16};
constexpr Range kLatency{0, 1};
constexpr std::int64_t kMostDevices = 1 << 16;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  return out;
}

/// Links between pairs of devices of a node, each way.
struct Mesh {
  BytesPerSecond rate;  ///< of one link
  Seconds latency;
  std::map<std::pair<std::int64_t, std::int64_t>, int> links;  ///< how many a pair has, the lower number first
};

struct Inside {
  BytesPerSecond rate;
  Seconds latency;
  std::optional<BytesPerSecond> uplink;
  bool peer_access = true;
  std::optional<Mesh> mesh = {};
};

struct Cards {
  std::int64_t per_node = 1;
  BytesPerSecond rate;
  Seconds latency;
};

class Writer {
 public:
  Writer(const ConfigNode& root, const ConfigNode& catalogue) : name_(root.at("cluster").as_string()) {
    for (const char c : name_)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-')
        throw root.at("cluster").error("may have letters, digits, _ and - only");
    description_ = root.get("description", "");
    source_ = root.get("source", "");
    nodes_ = root.get("nodes", 1, Range{1, 1e5});
    read_devices(root.at("devices"), catalogue);
    read_links(root);
    if (root.has("processors")) processors_.emplace(kind(root.at("processors").at("kind"), catalogue));
    root.check_all_read();
  }

  std::string write() {
    out_ = "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n";
    out_ +=
        fmt::format("<!-- Written by epocast from the description of cluster {}; see docs/platforms.md. -->\n", name_);
    out_ += fmt::format("<platform version=\"4.1\">\n  <zone id=\"{}\" routing=\"{}\">\n", name_,
                        inside_.mesh ? "Floyd" : "DijkstraCache");
    properties();
    inside_.mesh ? meshed_nodes() : nodes();
    out_ += links_ + routes_ + "  </zone>\n</platform>\n";
    return std::move(out_);
  }

 private:
  static ConfigNode kind(const ConfigNode& name, const ConfigNode& catalogue) {
    const char* remedy = "`epocast list devices` shows all kinds; others need a platform file (docs/platforms.md)";
    if (name.is_map() || name.is_list())
      throw name.error(fmt::format("must be the name of a device, not its figures; {}", remedy));
    if (!catalogue.has(name.as_string()))
      throw name.error(fmt::format("unknown device '{}'{}; {}", name.as_string(),
                                   name_hint(name.as_string(), catalogue.keys()), remedy));
    return catalogue.at(name.as_string());
  }

  void read_devices(const ConfigNode& devices, const ConfigNode& catalogue) {
    device_.emplace(kind(devices.at("kind"), catalogue));
    if (device_->has("kernels_like"))
      kernels_like_ = kind(device_->at("kernels_like"), catalogue).at("model").as_string();
    product_share_ = device_->get("product_share", product_share_, Range{0.1, 10});
    per_node_ = devices.at("per_node").as_int(Range{1, 1024});
    if (nodes_ * per_node_ > kMostDevices)
      throw devices.error(
          fmt::format("{} devices in all are more than {}; use fewer nodes", nodes_ * per_node_, kMostDevices));
    per_switch_ = devices.get("per_switch", per_node_, Range{1, 1024});
    if (per_node_ % per_switch_ != 0)
      throw devices.at("per_switch").error(fmt::format("must divide the {} devices of a node", per_node_));
    per_board_ = device_->get("per_board", per_board_, Range{1, 16});
    shared_speed_ = device_->get("shared_speed", shared_speed_, Range{0.01, 1});
  }

  void read_links(const ConfigNode& root) {
    const ConfigNode inside = root.at("inside");
    inside_ = {inside.at("rate").as_bytes_per_second(kRate), inside.get("latency", Seconds(0), kLatency), std::nullopt,
               true};
    inside_.peer_access = inside.get("peer_access", true);
    if (inside.has("uplink")) inside_.uplink = inside.at("uplink").as_bytes_per_second(kRate);
    const bool switches = per_switch_ < per_node_;
    if (switches != inside_.uplink.has_value())
      throw inside.error(switches ? "needs the rate of the switches' uplink: uplink"
                                  : "uplink has no effect without devices.per_switch; give both or none");
    if (inside.has("mesh")) inside_.mesh = read_mesh(inside.at("mesh"));
    if (nodes_ == 1 && !root.has("cards")) return;
    const ConfigNode cards = root.at("cards");
    cards_ = {cards.get("per_node", 1, Range{1, 1024}), cards.at("rate").as_bytes_per_second(kRate),
              cards.get("latency", Seconds(0), kLatency)};
    if (per_node_ % cards_.per_node != 0)
      throw cards.error(fmt::format("{} devices cannot be divided over {} cards", per_node_, cards_.per_node));
  }

  Mesh read_mesh(const ConfigNode& node) const {
    Mesh mesh{node.at("rate").as_bytes_per_second(kRate), node.get("latency", Seconds(0), kLatency), {}};
    for (const ConfigNode& pair : node.at("links").items()) {
      const std::string text = pair.as_string();
      const std::size_t dash = std::min(text.find('-'), text.size());
      const std::int64_t a = device_number(pair, std::string_view(text).substr(0, dash));
      const std::int64_t b = device_number(pair, std::string_view(text).substr(std::min(dash + 1, text.size())));
      if (a == b) throw pair.error("joins a device with itself");
      ++mesh.links[{std::min(a, b), std::max(a, b)}];
    }
    return mesh;
  }

  std::int64_t device_number(const ConfigNode& pair, std::string_view text) const {
    std::int64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc() || end != text.data() + text.size() || number < 0 || number >= per_node_)
      throw pair.error(fmt::format("must be two devices of a node, 0 to {}, such as 0-1", per_node_ - 1));
    return number;
  }

  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    out_ += "    ";
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void property(const std::string& id, const std::string& value) {
    line(R"(<prop id="{}" value="{}"/>)", id, escaped(value));
  }

  void properties() {
    property("epocast.description", description_.empty()
                                        ? fmt::format("{} of {}", counted(nodes_, "node"), counted(per_node_, "device"))
                                        : description_);
    speed_ = rate(*device_);
    figures(*device_);
    if (!kernels_like_.empty()) property("epocast.kernels_like", kernels_like_);
    if (product_share_ != 1) property("epocast.product_share", fmt::format("{}", product_share_));
    if (per_board_ > 1) property("epocast.shared_speed", fmt::format("{:.17g}", shared_speed_));
    device_->check_all_read();
    if (!source_.empty()) property("source.topology", source_);
  }

  static double rate(const ConfigNode& device) {
    return device.at("peak_rate").as_flop_per_second(Range{1e6, 1e18}).value;
  }

  void figures(const ConfigNode& device) {
    property("epocast.device_model", device.at("model").as_string());
    for (const char* key : {"cores", "peak_rate", "peak_rate_fp16", "peak_rate_bf16", "peak_rate_tf32", "peak_rate_fp8",
                            "memory", "memory_bandwidth"})
      if (device.has(key)) property(fmt::format("epocast.{}", key), device.at(key).as_string());
    if (device.has("source")) property("source.device_model", device.at("source").as_string());
  }

  /// On a link as fast as their memory, each way.
  void processors(std::int64_t n) {
    const std::string id = fmt::format("processors-{}", n);
    line(R"(<host id="{}" speed="{:.17g}f">)", id, rate(*processors_));
    property("epocast.node", fmt::format("node-{}", n));
    property("epocast.trains", "false");
    figures(*processors_);
    processors_->check_all_read();
    line("</host>");
    link(fmt::format("memory-{}", n), processors_->at("memory_bandwidth").as_bytes_per_second(kRate), Seconds(0));
  }

  void link(const std::string& id, BytesPerSecond rate, Seconds latency) {
    links_ += fmt::format(
        "    <link id=\"{}\" bandwidth=\"{:.17g}Bps\" latency=\"{:.17g}s\" sharing_policy=\"SPLITDUPLEX\"/>\n", id,
        rate.value, latency.value);
  }

  void route(const std::string& from, const std::string& to, const std::string& links) {
    routes_ += fmt::format("    <route src=\"{}\" dst=\"{}\">{}</route>\n", from, to, links);
  }

  /// Between zones: from the host or router `out` of one to `in` of the other.
  void zone_route(const std::string& from, const std::string& out, const std::string& to, const std::string& in,
                  const std::string& links) {
    routes_ += fmt::format("    <zoneRoute src=\"{}\" dst=\"{}\" gw_src=\"{}\" gw_dst=\"{}\">{}</zoneRoute>\n", from,
                           to, out, in, links);
  }

  static std::string up(const std::string& id) { return fmt::format(R"(<link_ctn id="{}" direction="UP"/>)", id); }
  static std::string down(const std::string& id) { return fmt::format(R"(<link_ctn id="{}" direction="DOWN"/>)", id); }

  /// A device and its link to the node's switches.
  void device(std::int64_t n, std::int64_t d) {
    const std::string board =
        per_board_ > 1 ? fmt::format(R"(<prop id="epocast.board" value="{}"/>)", d / per_board_) : "";
    line(R"(<host id="gpu-{}-{}" speed="{:.17g}f"><prop id="epocast.node" value="node-{}"/>{}</host>)", n, d, speed_, n,
         board);
    link(fmt::format("link-{}-{}", n, d), inside_.rate, inside_.latency / 2);
  }

  /// Each a zone of its own with a route for each pair: the route of the fewest links may lead through a third device.
  void meshed_nodes() {
    const bool several_cards = cards_.per_node > 1;
    for (std::int64_t n = 0; n < nodes_; ++n) meshed_node(n);
    for (std::int64_t n = 0; processors_ && n < nodes_; ++n) {
      line(R"(<zone id="host-{}" routing="Full">)", n);
      processors(n);
      line("</zone>");
      zone_route(fmt::format("host-{}", n), fmt::format("processors-{}", n), fmt::format("node-{}", n),
                 fmt::format("root-{}", n), up(fmt::format("memory-{}", n)));
    }
    if (nodes_ == 1) return;
    line(R"(<zone id="between" routing="Full"><router id="fabric"/></zone>)");
    for (std::int64_t n = 0; n < nodes_; ++n) {
      const std::string way = fmt::format("{}-{}", several_cards ? "cables" : "card", n);
      link(way, static_cast<double>(cards_.per_node) * cards_.rate, several_cards ? Seconds(0) : cards_.latency / 2);
      zone_route(fmt::format("node-{}", n), fmt::format("{}-{}", several_cards ? "port" : "root", n), "between",
                 "fabric", up(way));
    }
  }

  void meshed_node(std::int64_t n) {
    const std::string root = fmt::format("root-{}", n), port = fmt::format("port-{}", n);
    const bool several_cards = nodes_ > 1 && cards_.per_node > 1;
    const std::string outer_links = std::exchange(links_, ""), outer_routes = std::exchange(routes_, "");
    line(R"(<zone id="node-{}" routing="Full">)", n);
    for (std::int64_t d = 0; d < per_node_; ++d) device(n, d);
    line(R"(<router id="{}"/>)", root);
    if (inside_.uplink)
      for (std::int64_t s = 0; s < per_node_ / per_switch_; ++s)
        link(fmt::format("uplink-{}-{}", n, s), *inside_.uplink, Seconds(0));
    if (several_cards) {
      line(R"(<router id="{}"/>)", port);
      for (std::int64_t c = 0; c < cards_.per_node; ++c)
        link(fmt::format("card-{}-{}", n, c), cards_.rate, cards_.latency / 2);
      route(root, port, up(fmt::format("card-{}-0", n)));  // the processors' way to other nodes
    }
    const auto own = [&](std::int64_t d) { return fmt::format("link-{}-{}", n, d); };
    const auto uplink = [&](std::int64_t d) { return fmt::format("uplink-{}-{}", n, d / per_switch_); };
    for (std::int64_t a = 0; a < per_node_; ++a) {
      const std::string gpu = fmt::format("gpu-{}-{}", n, a);
      for (std::int64_t b = a + 1; b < per_node_; ++b) {
        const std::string other = fmt::format("gpu-{}-{}", n, b);
        if (const auto pair = inside_.mesh->links.find({a, b}); pair != inside_.mesh->links.end()) {
          const std::string direct = fmt::format("mesh-{}-{}-{}", n, a, b);
          link(direct, pair->second * inside_.mesh->rate, inside_.mesh->latency);
          route(gpu, other, up(direct));
          continue;
        }
        const bool over_uplinks = inside_.uplink && (a / per_switch_ != b / per_switch_ || !inside_.peer_access);
        route(gpu, other, up(own(a)) + (over_uplinks ? up(uplink(a)) + down(uplink(b)) : "") + down(own(b)));
      }
      route(gpu, root, up(own(a)) + (inside_.uplink ? up(uplink(a)) : ""));
      if (several_cards)
        route(gpu, port, up(own(a)) + up(fmt::format("card-{}-{}", n, a * cards_.per_node / per_node_)));
    }
    out_ += std::exchange(links_, outer_links) + std::exchange(routes_, outer_routes);
    line("</zone>");
  }

  void nodes() {
    for (std::int64_t n = 0; n < nodes_; ++n) node(n);
    for (std::int64_t n = 0; processors_ && n < nodes_; ++n) {
      processors(n);
      const std::string id = fmt::format("processors-{}", n);
      route(id, fmt::format("root-{}", n), up(fmt::format("memory-{}", n)));
      if (nodes_ > 1 && cards_.per_node > 1) route(id, fmt::format("port-{}-0", n), up(fmt::format("card-{}-0", n)));
    }
    if (nodes_ > 1) line(R"(<router id="fabric"/>)");
  }

  void node(std::int64_t n) {
    const std::string root = fmt::format("root-{}", n);
    const bool switches = inside_.uplink.has_value();
    for (std::int64_t d = 0; d < per_node_; ++d) {
      const std::string gpu = fmt::format("gpu-{}-{}", n, d), own = fmt::format("link-{}-{}", n, d);
      device(n, d);
      const std::string place = fmt::format("{}-{}", n, d / per_switch_);
      if (switches && !inside_.peer_access)
        route(gpu, root, up(own) + up("uplink-" + place));  // to host memory and back, past neighbours on the switch
      else
        route(gpu, switches ? "switch-" + place : root, up(own));
    }
    line(R"(<router id="{}"/>)", root);
    for (std::int64_t s = 0; switches && s < per_node_ / per_switch_; ++s) {
      const std::string id = fmt::format("{}-{}", n, s);
      link("uplink-" + id, *inside_.uplink, Seconds(0));
      if (!inside_.peer_access) continue;
      line(R"(<router id="switch-{}"/>)", id);
      route("switch-" + id, root, up("uplink-" + id));
    }
    if (nodes_ > 1) cards(n, root);
  }

  void cards(std::int64_t n, const std::string& root) {
    if (cards_.per_node == 1) {
      link(fmt::format("card-{}", n), cards_.rate, cards_.latency / 2);
      route(root, "fabric", up(fmt::format("card-{}", n)));
      return;
    }
    const std::int64_t sharing = per_node_ / cards_.per_node;
    for (std::int64_t c = 0; c < cards_.per_node; ++c) {
      const std::string id = fmt::format("{}-{}", n, c);
      line(R"(<router id="port-{}"/>)", id);
      link("card-" + id, cards_.rate, cards_.latency / 2);
      link("cable-" + id, cards_.rate, Seconds(0));
      route("port-" + id, "fabric", up("cable-" + id));
    }
    // By way of the card the way to a neighbour is longer than over the node's switch, so nothing inside takes it. A
    // connection of one link each is what lets the engine find routes without SimGrid's search of the whole network.
    for (std::int64_t d = 0; d < per_node_; ++d) {
      const std::string own = fmt::format("{}-{}", n, d), card = fmt::format("{}-{}", n, d / sharing);
      line(R"(<router id="slot-{}"/>)", own);
      link("bus-" + own, inside_.rate, Seconds(0));
      route("gpu-" + own, "slot-" + own, up("bus-" + own));
      route("slot-" + own, "port-" + card, up("card-" + card));
    }
  }

  std::string name_, description_, source_;
  std::int64_t nodes_ = 1, per_node_ = 1, per_switch_ = 1, per_board_ = 1;
  double shared_speed_ = 1, product_share_ = 1;
  std::string kernels_like_;
  std::optional<ConfigNode> device_, processors_;
  double speed_ = 0;
  Inside inside_;
  Cards cards_;
  std::string out_, links_, routes_;
};

}  // namespace

std::string cluster_platform(const ConfigNode& description, const ConfigNode& devices) {
  return Writer(description, devices).write();
}

Cluster load_cluster(const ConfigNode& description, const ConfigNode& devices) {
  const std::string text = cluster_platform(description, devices);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       fmt::format("epocast-clusters-{}", getuid()) /
                                       fingerprint(text);  // what is in the file names its folder
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / (description.at("cluster").as_string() + ".xml");
  if (!std::filesystem::exists(file)) write_file(file, text);
  const InputRecord::Pause derived;  // from the description
  return load_platform(file);
}

}  // namespace epocast
