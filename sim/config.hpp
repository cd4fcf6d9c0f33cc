#pragma once
// Reads YAML strictly: every value knows its file, line, column and key path; every key must be read by somebody.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.hpp"
#include "sim/quantity.hpp"

namespace epocast {

namespace detail {
struct ConfigTree;  // sim/config_tree.hpp
}

/// Inclusive limits for a number.
struct Range {
  double min = -1e300;
  double max = 1e300;
};

/// One node of a YAML document. Cheap to copy; copies share the record of which keys were read.
class ConfigNode {
 public:
  /// Parses a file. Throws ConfigError if it is missing, not readable, not YAML, or has a duplicate key.
  static ConfigNode load_file(const std::filesystem::path& file);
  /// Parses text; `name` stands for the file in messages.
  static ConfigNode load_text(std::string_view text, std::string name);

  bool is_map() const;
  bool is_list() const;
  bool is_scalar() const;
  bool is_null() const;

  /// Whether a map has this key. Does not count as reading it.
  bool has(std::string_view key) const;
  /// The child at `key`, marked as read. Throws ConfigError "missing key" at this node's place if absent or not a map.
  ConfigNode at(std::string_view key) const;
  /// Keys of a map in file order (marks nothing); throws if not a map.
  std::vector<std::string> keys() const;
  /// Elements of a list, all marked as read; throws if not a list.
  std::vector<ConfigNode> items() const;

  // Typed scalars. Each throws ConfigError at this node's place when the text is of another type or out of range.
  std::string as_string() const;
  bool as_bool() const;
  /// 1200000 or 1.2e6, but not 4.0.
  std::int64_t as_int(Range range = {}) const;
  double as_double(Range range = {}) const;
  Seconds as_seconds(Range range = {0}) const;
  Bytes as_bytes(Range range = {0}) const;
  BytesPerSecond as_bytes_per_second(Range range = {0}) const;
  FlopPerSecond as_flop_per_second(Range range = {0}) const;
  Flop as_flop(Range range = {0}) const;

  /// The child's value if the key is there, else `fallback`.
  std::string get(std::string_view key, const char* fallback) const;
  bool get(std::string_view key, bool fallback) const;
  std::int64_t get(std::string_view key, std::int64_t fallback, Range range = {}) const;
  std::int64_t get(std::string_view key, int fallback, Range range = {}) const;
  double get(std::string_view key, double fallback, Range range = {}) const;
  Seconds get(std::string_view key, Seconds fallback, Range range = {0}) const;
  Bytes get(std::string_view key, Bytes fallback, Range range = {0}) const;

  /// A ConfigError at this node's place; use as `throw node.error("...")`.
  ConfigError error(std::string problem) const;
  Location where() const;
  /// Dotted path from the document's root: `strategy.servers`, `layers[3].kernel`.
  const std::string& path() const;

  /// Throws ConfigError for the first key below this node that nobody has read, with the nearest key that was asked for
  /// (by has() or at()) as a hint.
  void check_all_read() const;
  /// Marks this node and all below as read.
  void mark_all_read() const;

  /// A deep copy of the tree in which the value at the dotted path `key` (created if absent; a `.` walks into maps) is
  /// replaced by `value`, which keeps its own place for messages. Nothing in the copy is marked as read.
  /// Throws ConfigError if the path runs through something that is not a map.
  ConfigNode with(std::string_view key, const ConfigNode& value) const;
  /// A deep copy without the top-level key (no error if absent).
  ConfigNode without(std::string_view key) const;

  /// The YAML text of this node in flow style, on one line: for labels such as `{name: parameter_server, mode: async}`.
  std::string flow_text() const;

 private:
  explicit ConfigNode(std::shared_ptr<detail::ConfigTree> tree);
  ConfigNode child(detail::ConfigTree& node) const;
  const std::string& scalar(std::string_view expected) const;
  bool has_in_map(std::string_view key) const;

  // Shares ownership of the whole document, so a node may outlive its parent's handle.
  std::shared_ptr<detail::ConfigTree> tree_;
};

/// The candidate nearest to `name` by edit distance if it is near enough to be a typo, else "".
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// " (did you mean 'x'?)", where names are near or hold this one, or " (valid: a, b, c)": what to append to a message
/// about an unknown name.
std::string name_hint(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace epocast
