#pragma once
// The document tree behind ConfigNode, shared by the files that implement it. Include sim/config.hpp to use it.

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.hpp"

namespace epocast::detail {

// Limits that no honest input meets. They bound memory and recursion on hostile ones: an alias may stand for a copy of
// a large value many times over, and every walk over a tree recurses once per level.
inline constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxNodes = 1'000'000;
inline constexpr int kMaxDepth = 64;
inline constexpr std::size_t kMaxKeyBytes = 200;

/// A place that shares the file's name with all other nodes of the file.
struct Place {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  Location location() const { return {file ? *file : std::string(), line, column}; }
};

/// One value of a document. A node does not move once it is linked into a document: children hold its address.
struct ConfigTree {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  bool quoted = false;    // a scalar that is text even if it looks like a number
  bool read = false;      // some reader asked for this value
  std::string text;       // of a scalar
  std::string key;        // in the parent, if that is a map
  std::size_t index = 0;  // in the parent, if that is a list
  Place place;
  Place key_place;
  ConfigTree* parent = nullptr;
  std::vector<std::unique_ptr<ConfigTree>> children;
  std::set<std::string, std::less<>> asked;  // keys that readers of this map know of

  /// Dotted path from the root, made when first asked for: most nodes never appear in a message.
  const std::string& path();
  /// For a root that is a copy of a part of another document.
  void set_root_path(std::string path);

  /// The child of a map at `name`, or null.
  ConfigTree* find(std::string_view name) const;
  /// Appends a child; `this` must be a list or a map, and for a map the child's key must be new.
  ConfigTree& append(std::unique_ptr<ConfigTree> child);
  /// A deep copy with nothing marked as read and no parent. `nodes` is increased by the size of the copy.
  /// This node takes the depth `depth`. Throws ConfigError beyond the limits.
  std::unique_ptr<ConfigTree> copy(int depth, std::size_t& nodes) const;

 private:
  std::string path_;
  bool path_known_ = false;
};

/// Throws ConfigError at `place` if a node at `depth` (the root's is 0), the `nodes`th of its document, is beyond the
/// limits.
void check_limits(const Place& place, int depth, std::size_t nodes);

/// Parses one YAML document. Throws ConfigError.
std::unique_ptr<ConfigTree> parse_yaml(std::string_view text, std::shared_ptr<const std::string> name);

/// User text for a message: its first 80 bytes. quote() also puts it in quotes.
std::string shorten(std::string_view text);
std::string quote(std::string_view text);

/// "text", "a list", "a map" or "nothing".
std::string_view describe(ConfigTree::Kind kind);

}  // namespace epocast::detail
