// Walking a document, and the record of which keys were read. The rest of ConfigNode: config_scalar.cpp (typed values),
// config_override.cpp (with, without, flow_text), config_parse.cpp (YAML).

#include "sim/config.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/config_tree.hpp"
#include "sim/input_file.hpp"

namespace epocast {

using detail::ConfigTree;
using Kind = ConfigTree::Kind;

namespace {

void check_read(const ConfigTree& node) {
  for (const auto& child : node.children) {
    if (node.kind == Kind::map && !child->read) {
      std::string problem = "unknown key " + detail::quote(child->key);
      if (node.asked.contains(child->key)) {
        // A reader knows this key and chose not to read it: another key decides here.
        problem = "key " + detail::quote(child->key) + " has no effect here";
      } else {
        problem += name_hint(child->key, {node.asked.begin(), node.asked.end()});
      }
      throw ConfigError(child->key_place.location(), child->path(), std::move(problem));
    }
    check_read(*child);
  }
}

void mark_read(ConfigTree& node) {
  node.read = true;
  for (const auto& child : node.children) mark_read(*child);
}

// Nearest key that is there and that nobody has asked for: what the user may have written instead of `key`.
std::string likely_typo(const ConfigTree& map, std::string_view key) {
  std::vector<std::string> unread;
  for (const auto& child : map.children)
    if (!child->read && !map.asked.contains(child->key)) unread.push_back(child->key);
  return nearest_name(key, unread);
}

}  // namespace

ConfigNode::ConfigNode(std::shared_ptr<ConfigTree> tree) : tree_(std::move(tree)) {}

ConfigNode ConfigNode::child(ConfigTree& node) const { return ConfigNode(std::shared_ptr<ConfigTree>(tree_, &node)); }

ConfigNode ConfigNode::load_file(const std::filesystem::path& file) {
  return load_text(read_input_file(file, detail::kMaxFileBytes), file.string());
}

ConfigNode ConfigNode::load_text(std::string_view text, std::string name) {
  return ConfigNode(detail::parse_yaml(text, std::make_shared<const std::string>(std::move(name))));
}

bool ConfigNode::is_map() const { return tree_->kind == Kind::map; }
bool ConfigNode::is_list() const { return tree_->kind == Kind::list; }
bool ConfigNode::is_scalar() const { return tree_->kind == Kind::scalar; }
bool ConfigNode::is_null() const { return tree_->kind == Kind::null; }

bool ConfigNode::has(std::string_view key) const {
  tree_->asked.emplace(key);
  return tree_->find(key) != nullptr;
}

ConfigNode ConfigNode::at(std::string_view key) const {
  if (is_null()) throw error(fmt::format("has no value, expected a map with the key '{}'", key));
  if (!is_map())
    throw error(fmt::format("expected a map with the key '{}', got {}", key, detail::describe(tree_->kind)));
  tree_->asked.emplace(key);
  ConfigTree* const found = tree_->find(key);
  if (found == nullptr) {
    const std::string typo = likely_typo(*tree_, key);
    throw error(
        fmt::format("missing key '{}'{}", key, typo.empty() ? "" : fmt::format(" (is '{}' a typo for it?)", typo)));
  }
  found->read = true;
  return child(*found);
}

std::vector<std::string> ConfigNode::keys() const {
  if (is_null()) throw error("has no value, expected a map");
  if (!is_map()) throw error(fmt::format("expected a map, got {}", detail::describe(tree_->kind)));
  std::vector<std::string> out;
  for (const auto& node : tree_->children) out.push_back(node->key);
  return out;
}

std::vector<ConfigNode> ConfigNode::items() const {
  if (is_null()) throw error("has no value, expected a list");
  if (!is_list()) throw error(fmt::format("expected a list, got {}", detail::describe(tree_->kind)));
  std::vector<ConfigNode> out;
  for (const auto& node : tree_->children) {
    node->read = true;
    out.push_back(child(*node));
  }
  return out;
}

ConfigError ConfigNode::error(std::string problem) const { return {where(), path(), std::move(problem)}; }
Location ConfigNode::where() const { return tree_->place.location(); }
const std::string& ConfigNode::path() const { return tree_->path(); }

void ConfigNode::check_all_read() const { check_read(*tree_); }
void ConfigNode::mark_all_read() const { mark_read(*tree_); }

}  // namespace epocast
