// Edited copies of a document (command-line overrides, sweep axes) and its one-line text.

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/config.hpp"
#include "sim/config_tree.hpp"

namespace epocast {

using detail::ConfigTree;
using Kind = ConfigTree::Kind;

namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

bool is_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Whether text may stand without quotes and be read back as the same scalar. Stricter than YAML: any text of other
// characters is quoted, so no indicator or context rule can matter.
bool is_plain(std::string_view text, bool was_quoted) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return false;
  if (is_word(text, {"null", "Null", "NULL"})) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const char first = text.front();
  const char second = text.size() > 1 ? text[1] : ' ';
  const bool sign = (first == '-' || first == '+' || first == '.') && (digit(second) || second == '.');
  if (!letter(first) && !digit(first) && !sign && first != '/') return false;
  if (text.starts_with("...")) return false;
  // Quotes said that this is text although it looks like a number or a truth value.
  if (was_quoted && (!letter(first) || is_word(text, {"true", "True", "TRUE", "false", "False", "FALSE"})))
    return false;
  return std::ranges::all_of(text, [&](char c) {
    return letter(c) || digit(c) || is_word(std::string_view(&c, 1), {" ", ".", "/", "+", "-"});
  });
}

std::string flow_scalar(std::string_view text, bool was_quoted) {
  if (is_plain(text, was_quoted)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

void write_flow(const ConfigTree& node, std::string& out) {
  switch (node.kind) {
    case Kind::null: out += "null"; return;
    case Kind::scalar: out += flow_scalar(node.text, node.quoted); return;
    case Kind::list:
    case Kind::map: break;
  }
  const bool map = node.kind == Kind::map;
  out += map ? '{' : '[';
  const char* separator = "";
  for (const auto& child : node.children) {
    out += separator;
    separator = ", ";
    if (map) out += flow_scalar(child->key, false) + ": ";
    write_flow(*child, out);
  }
  out += map ? '}' : ']';
}

// A deep copy that is a document of its own; it remembers the path of the part that it was.
std::unique_ptr<ConfigTree> copy_document(ConfigTree& tree, std::size_t& nodes) {
  auto out = tree.copy(0, nodes);
  out->set_root_path(tree.path());
  return out;
}

}  // namespace

ConfigNode ConfigNode::with(std::string_view key, const ConfigNode& value) const {
  const std::vector<std::string> parts = split_path(key);
  const auto fail = [&](std::string problem) {
    throw ConfigError(value.where(), std::string(key), std::move(problem));
  };
  for (const std::string& part : parts) {
    if (part.empty()) fail(fmt::format("{} is not a key: expected names joined by dots", detail::quote(key)));
    if (part.size() > detail::kMaxKeyBytes) fail(fmt::format("a key longer than {} bytes", detail::kMaxKeyBytes));
  }
  std::size_t nodes = 0;
  std::unique_ptr<ConfigTree> root = copy_document(*tree_, nodes);
  ConfigTree* node = root.get();
  int depth = 0;
  std::string walked;
  for (const std::string& part : parts) {
    if (node->kind == Kind::null) {  // `strategy:` without a value becomes a map
      node->kind = Kind::map;
      node->place = value.tree_->place;
    }
    if (node->kind != Kind::map)
      fail(fmt::format("{} is {}, not a map, so '{}' cannot be set in it",
                       walked.empty() ? "the document" : "'" + walked + "'", detail::describe(node->kind), part));
    walked += (walked.empty() ? "" : ".") + part;
    detail::check_limits(value.tree_->place, ++depth, nodes);
    ConfigTree* next = node->find(part);
    if (next == nullptr) {
      auto created = std::make_unique<ConfigTree>();
      created->key = part;
      created->place = created->key_place = value.tree_->place;
      next = &node->append(std::move(created));
      ++nodes;
    }
    node = next;
  }
  // Replaced in its slot, so that the order of keys, and of columns made from them, stays the user's.
  auto replacement = value.tree_->copy(depth, nodes);
  replacement->key = node->key;
  replacement->key_place = node->key_place;
  replacement->index = node->index;
  replacement->parent = node->parent;
  node->parent->children[node->index] = std::move(replacement);
  return ConfigNode(std::move(root));
}

ConfigNode ConfigNode::without(std::string_view key) const {
  std::size_t nodes = 0;
  std::unique_ptr<ConfigTree> root = copy_document(*tree_, nodes);
  if (root->kind == Kind::map) {
    std::erase_if(root->children, [key](const auto& child) { return child->key == key; });
    for (std::size_t i = 0; i < root->children.size(); ++i) root->children[i]->index = i;
  }
  return ConfigNode(std::move(root));
}

std::string ConfigNode::flow_text() const {
  std::string out;
  write_flow(*tree_, out);
  return out;
}

}  // namespace epocast
