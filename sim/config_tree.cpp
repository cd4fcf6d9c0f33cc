#include "sim/config_tree.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace epocast::detail {

const std::string& ConfigTree::path() {
  if (path_known_) return path_;
  if (parent != nullptr) {
    const std::string& above = parent->path();
    if (parent->kind == Kind::list) {
      path_ = fmt::format("{}[{}]", above, index);
    } else {
      path_ = above.empty() ? key : above + "." + key;
    }
  }
  path_known_ = true;
  return path_;
}

void ConfigTree::set_root_path(std::string path) {
  path_ = std::move(path);
  path_known_ = true;
}

ConfigTree* ConfigTree::find(std::string_view name) const {
  if (kind != Kind::map) return nullptr;
  const auto it = std::ranges::find_if(children, [name](const auto& child) { return child->key == name; });
  return it == children.end() ? nullptr : it->get();
}

ConfigTree& ConfigTree::append(std::unique_ptr<ConfigTree> child) {
  child->parent = this;
  child->index = children.size();
  children.push_back(std::move(child));
  return *children.back();
}

std::unique_ptr<ConfigTree> ConfigTree::copy(int depth, std::size_t& nodes) const {
  check_limits(place, depth, ++nodes);
  auto out = std::make_unique<ConfigTree>();
  out->kind = kind;
  out->quoted = quoted;
  out->text = text;
  out->key = key;
  out->place = place;
  out->key_place = key_place;
  out->children.reserve(children.size());
  for (const auto& child : children) out->append(child->copy(depth + 1, nodes));
  return out;
}

void check_limits(const Place& place, int depth, std::size_t nodes) {
  if (depth >= kMaxDepth)
    throw ConfigError(place.location(), "", fmt::format("nested deeper than {} levels", kMaxDepth));
  if (nodes > kMaxNodes)
    throw ConfigError(place.location(), "", fmt::format("more than {} values in one document", kMaxNodes));
}

std::string shorten(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  if (text.size() <= kLongest) return std::string(text);
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside of a UTF-8 sequence
  return std::string(text.substr(0, end)) + "...";
}

std::string quote(std::string_view text) { return "'" + shorten(text) + "'"; }

std::string_view describe(ConfigTree::Kind kind) {
  switch (kind) {
    case ConfigTree::Kind::null: return "nothing";
    case ConfigTree::Kind::scalar: return "text";
    case ConfigTree::Kind::list: return "a list";
    case ConfigTree::Kind::map: return "a map";
  }
  return "";
}

}  // namespace epocast::detail
