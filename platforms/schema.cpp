#include "platforms/schema.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

namespace {

struct ElementRule {
  std::string tag;
  std::vector<std::string> required;  // attributes
  std::vector<std::string> optional;  // attributes
  std::vector<std::string> children;
};

// A part of SimGrid's DTD 4.1: what means something to epocast. AS and ASroute are the old names of zone and zoneRoute.
const std::vector<ElementRule>& rules() {
  static const std::vector<std::string> zone_children = {"prop",   "zone", "AS",    "cluster",   "host",
                                                         "router", "link", "route", "zoneRoute", "ASroute"};
  static const std::vector<ElementRule> table = {
      {"platform", {"version"}, {}, {"zone", "AS", "cluster"}},
      {"zone", {"id", "routing"}, {}, zone_children},
      {"AS", {"id", "routing"}, {}, zone_children},
      {"cluster",
       {"id", "prefix", "suffix", "radical", "speed", "bw", "lat"},
       {"core", "sharing_policy", "topology", "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id",
        "limiter_link", "loopback_bw", "loopback_lat"},
       {"prop"}},
      {"host", {"id", "speed"}, {"core"}, {"prop", "disk"}},
      {"disk", {"id", "read_bw", "write_bw"}, {}, {"prop"}},
      {"router", {"id"}, {}, {}},
      {"link", {"id", "bandwidth", "latency"}, {"sharing_policy"}, {"prop"}},
      {"route", {"src", "dst"}, {"symmetrical"}, {"link_ctn"}},
      {"zoneRoute", {"src", "dst", "gw_src", "gw_dst"}, {"symmetrical"}, {"link_ctn"}},
      {"ASroute", {"src", "dst", "gw_src", "gw_dst"}, {"symmetrical"}, {"link_ctn"}},
      {"link_ctn", {"id"}, {"direction"}, {}},
      {"prop", {"id", "value"}, {}, {}},
  };
  return table;
}

const ElementRule* rule_of(std::string_view tag) {
  static const auto by_tag = [] {
    std::unordered_map<std::string_view, const ElementRule*> out;
    for (const ElementRule& rule : rules()) out.emplace(rule.tag, &rule);
    return out;
  }();
  const auto found = by_tag.find(tag);
  return found == by_tag.end() ? nullptr : found->second;
}

// SimGrid knows these, epocast does not use them; going on without them would simulate another machine.
struct Unsupported {
  std::string name;
  std::string remedy;
};
const std::vector<Unsupported>& unsupported_elements() {
  static const std::string no_profile = "capacities that vary with time are not supported: remove it";
  static const std::string no_actor = "a platform file describes the machine only: remove it";
  static const std::string write_links = "write <host>, <link> and <route>, or one <cluster>, instead";
  static const std::vector<Unsupported> table = {
      {"config", "epocast chooses SimGrid's settings itself: remove it"},
      {"trace", no_profile},
      {"trace_connect", no_profile},
      {"actor", no_actor},
      {"process", no_actor},
      {"include", "copy the included file's contents here"},
      {"peer", write_links},
      {"cabinet", write_links},
      {"backbone", write_links},
      {"host_link", write_links},
      {"bypassRoute", "write the wanted way as the <route> itself"},
      {"bypassZoneRoute", "write the wanted way as the <zoneRoute> itself"},
      {"bypassASroute", "write the wanted way as the <zoneRoute> itself"},
      {"storage", "storage is not simulated: remove it"},
      {"storage_type", "storage is not simulated: remove it"},
      {"mount", "storage is not simulated: remove it"},
  };
  return table;
}
const std::vector<Unsupported>& unsupported_attributes() {
  static const std::string no_profile = "capacities that vary with time are not supported: remove it";
  static const std::vector<Unsupported> table = {
      {"speed_file", no_profile},
      {"availability_file", no_profile},
      {"state_file", no_profile},
      {"bandwidth_file", no_profile},
      {"latency_file", no_profile},
      {"pstate", "give the one speed to simulate: remove it"},
      {"coordinates", "routes are not computed from coordinates: remove it"},
  };
  return table;
}

const Unsupported* find(const std::vector<Unsupported>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Unsupported::name);
  return found == table.end() ? nullptr : &*found;
}

void check_attributes(const XmlSource& xml, pugi::xml_node element, const ElementRule& rule) {
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const pugi::xml_attribute attribute : element.attributes()) {
    const std::string_view name = attribute.name();
    for (pugi::xml_attribute before = attribute.previous_attribute(); before; before = before.previous_attribute())
      if (before.name() == name)
        throw ConfigError(xml.locate(element, attribute), describe(element) + "." + attribute.name(),
                          "attribute given twice");
    if (has(rule.required, name) || has(rule.optional, name)) continue;
    if (const Unsupported* unsupported = find(unsupported_attributes(), name))
      xml.fail(element, attribute.name(), unsupported->remedy);
    std::vector<std::string> known = rule.required;
    known.insert(known.end(), rule.optional.begin(), rule.optional.end());
    xml.fail(element, attribute.name(), "unknown attribute of <" + rule.tag + ">" + name_hint(attribute.name(), known));
  }
  for (const std::string& name : rule.required)
    if (!element.attribute(name.c_str())) xml.fail(element, "missing attribute '" + name + "'");
  // Only these two may be empty: they are pasted around a number.
  for (const std::string& name : rule.required)
    if (name != "prefix" && name != "suffix" && name != "value" && *element.attribute(name.c_str()).value() == '\0')
      xml.fail(element, name.c_str(), "is empty");
}

// SimGrid wants properties, then hosts or zones, then routes. It says so in terms of parser states.
void check_order(const XmlSource& xml, pugi::xml_node zone) {
  std::string holds;  // the first child that decides what kind of zone this is
  int last_rank = 0;
  for (const pugi::xml_node child : zone.children()) {
    const std::string tag = child.name();
    const bool is_route = tag.ends_with("oute");
    const int rank = tag == "prop" ? 0 : is_route ? 2 : 1;
    if (rank < last_rank)
      xml.fail(child, rank == 0 ? "properties go first in a zone: move this <prop> up"
                                : "routes go last in a zone: move this <" + tag + "> before the first of them");
    last_rank = rank;
    if (rank == 0 || tag == "link") continue;
    const bool inner = tag == "zone" || tag == "AS" || tag == "cluster" || tag == "zoneRoute" || tag == "ASroute";
    const std::string kind = inner ? "zones" : "hosts";
    if (holds.empty()) holds = kind;
    if (holds == kind) continue;
    if (is_route)
      xml.fail(child, holds == "zones" ? "this zone holds zones: write <zoneRoute> with gw_src and gw_dst"
                                       : "this zone holds hosts: write <route>");
    xml.fail(child, "a zone holds either hosts or other zones, not both: put the hosts into a <zone> of their own");
  }
}

}  // namespace

void check_element(const XmlSource& xml, pugi::xml_node element) {
  const std::string_view tag = element.name();
  const ElementRule* const rule = rule_of(tag);
  if (rule == nullptr) xml.fail(element, "unknown element");  // only the root gets here: children are checked below
  check_attributes(xml, element, *rule);
  std::string_view allowed;  // the child before it, mostly: a large platform has thousands in a row
  for (const pugi::xml_node child : element.children()) {
    if (child.type() != pugi::node_element)
      throw ConfigError(xml.locate(child), describe(element), "text between the elements: remove it");
    const std::string_view name = child.name();
    if (name == allowed) continue;
    if (std::ranges::find(rule->children, name) != rule->children.end()) {
      allowed = name;
      continue;
    }
    if (const Unsupported* unsupported = find(unsupported_elements(), name))
      xml.fail(child, "<" + std::string(name) + "> is not supported; " + unsupported->remedy);
    if (rule_of(name) != nullptr) xml.fail(child, "a <" + rule->tag + "> cannot hold a <" + child.name() + ">");
    xml.fail(child, "unknown element <" + std::string(name) + ">" + name_hint(child.name(), rule->children));
  }
  if (tag == "zone" || tag == "AS") check_order(xml, element);
}

void check_document(const XmlSource& xml) {
  const pugi::xml_node root = xml.root();
  if (std::string_view(root.name()) != "platform")
    xml.fail(root, "the root element is <" + std::string(root.name()) +
                       ">, not <platform>: this is no SimGrid platform file");
  const std::string_view doctype = xml.doctype().value();
  if (!doctype.starts_with("platform") || doctype.find("simgrid.dtd") == std::string_view::npos)
    xml.fail(root, "missing before it: <!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">");
  const std::string version = root.attribute("version").value();
  if (version != "4" && version != "4.0" && version != "4.1")
    xml.fail(root, "version", "format version " + quote(version) + " is not supported; write version=\"4.1\"");
}

}  // namespace epocast
