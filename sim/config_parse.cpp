// YAML text to a ConfigTree, on yaml-cpp's event interface: events carry the marks and the anchors that its node
// interface drops, and our own limits hold before a large tree exists.

#include <cstddef>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "sim/config_tree.hpp"
#include "sim/text.hpp"

namespace epocast::detail {

namespace {

using FileName = std::shared_ptr<const std::string>;
using Kind = ConfigTree::Kind;

Place place_of(const YAML::Mark& mark, const FileName& file) {
  return mark.is_null() ? Place{file} : Place{file, mark.line + 1, mark.column + 1};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Refuses what is not a text file, and bracket nesting that would cost yaml-cpp's scanner much memory before its parser
// looks at the depth. Brackets in quotes and comments count too; hundreds of them left open are no loss.
void check_text(std::string_view text, const FileName& file) {
  constexpr int kMaxBrackets = 1000;
  if (text.size() > kMaxFileBytes)
    throw ConfigError({*file}, "", fmt::format("larger than {} MiB", kMaxFileBytes >> 20));
  int line = 1;
  int column = 1;
  int brackets = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text.substr(i));
    const auto place = [&] { return Location{*file, line, column}; };
    if (length == 0) throw ConfigError(place(), "", "not UTF-8 text");
    if (c == '\0') throw ConfigError(place(), "", "a NUL byte: this is not a text file");
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    if (brackets > kMaxBrackets) throw ConfigError(place(), "", fmt::format("nested deeper than {} levels", kMaxDepth));
    column += static_cast<int>(length);  // in bytes, as yaml-cpp counts
    if (c == '\n') {
      ++line;
      column = 1;
    }
    i += length;
  }
}

// Builds the tree. Open lists and maps form a stack; the innermost is its top.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(FileName file) : file_(std::move(file)) {}

  std::unique_ptr<ConfigTree> take_root() { return std::move(root_); }

  /// Where the last value or key starts that was seen.
  Place last_place() const { return last_; }
  /// " (the list starts in line 3)" for the innermost list or map that is open, or "".
  std::string innermost_start() const {
    if (stack_.empty()) return "";
    const ConfigTree& node = *stack_.back().node;
    return fmt::format(" (the {} starts in line {})", node.kind == Kind::list ? "list" : "map", node.place.line);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_ != nullptr)
      throw ConfigError(place_of(mark, file_).location(), "",
                        "the document ended above: check the indentation, or remove the '---'");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) fail(mark, "a map needs text as its key");
    auto node = make(mark, Kind::null);
    // yaml-cpp gives an absent value the place of whatever comes next, often on another line.
    if (in_map() && node->place.line != stack_.back().key_place.line) node->place = stack_.back().key_place;
    remember(anchor, add(std::move(node)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail(mark, "this alias stands inside of the value that it repeats");
    const ConfigTree& source = *it->second;
    if (expects_key()) {
      if (source.kind != Kind::scalar) fail(mark, "a map needs text as its key");
      start_key(mark, source.text);
      return;
    }
    check_limits(place_of(mark, file_), depth(), nodes_);
    // The copy keeps the places of the original: that is the text to edit when a value is wrong.
    add(source.copy(depth(), nodes_));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    // yaml-cpp 0.7 decodes these two escapes to one byte each, not to the UTF-8 of U+0085 and U+00A0.
    if (!is_utf8(value)) fail(mark, "the escapes \\N and \\_ are not supported");
    if (expects_key()) {
      if (value == "<<" && tag != kQuotedTag)
        fail(mark, "merging maps with << is not supported; write the keys out, or repeat a whole value with an alias");
      start_key(mark, value);
      if (anchor != YAML::NullAnchor) {
        // An anchor on a key: nodes of the tree are values, so the text is kept aside for aliases.
        auto node = std::make_unique<ConfigTree>();
        node->kind = Kind::scalar;
        node->quoted = tag == kQuotedTag;
        node->text = value;
        node->place = place_of(mark, file_);
        anchored_keys_.push_back(std::move(node));
        remember(anchor, *anchored_keys_.back());
      }
      return;
    }
    auto node = make(mark, Kind::scalar);
    node->quoted = tag == kQuotedTag;
    node->text = value;
    remember(anchor, add(std::move(node)));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    ConfigTree* node;
    YAML::anchor_t anchor;
    bool has_key = false;  // a map's key that waits for its value
    std::string key = {};
    Place key_place = {};
    std::unordered_map<std::string, int> line_of_key = {};
  };

  static constexpr const char* kQuotedTag = "!";  // what yaml-cpp calls a scalar in quotes, or a | or > block

  int depth() const { return static_cast<int>(stack_.size()); }
  bool in_map() const { return !stack_.empty() && stack_.back().node->kind == Kind::map; }
  bool expects_key() const { return in_map() && !stack_.back().has_key; }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string problem) const {
    std::string path = stack_.empty() ? "" : stack_.back().node->path();
    if (in_map() && stack_.back().has_key) path += (path.empty() ? "" : ".") + stack_.back().key;
    throw ConfigError(place_of(mark, file_).location(), std::move(path), std::move(problem));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != kQuotedTag) fail(mark, "YAML tags are not supported: " + quote(tag));
  }

  std::unique_ptr<ConfigTree> make(const YAML::Mark& mark, Kind kind) {
    auto node = std::make_unique<ConfigTree>();
    node->kind = kind;
    node->place = place_of(mark, file_);
    last_ = node->place;
    check_limits(node->place, depth(), ++nodes_);
    return node;
  }

  void start_key(const YAML::Mark& mark, const std::string& key) {
    Level& level = stack_.back();
    if (key.empty()) fail(mark, "an empty key");
    if (key.size() > kMaxKeyBytes) fail(mark, fmt::format("a key longer than {} bytes: {}", kMaxKeyBytes, quote(key)));
    const Place place = last_ = place_of(mark, file_);
    const auto [first, is_new] = level.line_of_key.emplace(key, place.line);
    if (!is_new) {
      const std::string& above = level.node->path();
      throw ConfigError(place.location(), above.empty() ? key : above + "." + key,
                        fmt::format("duplicate key, first given in line {}", first->second));
    }
    level.has_key = true;
    level.key = key;
    level.key_place = place;
  }

  ConfigTree& add(std::unique_ptr<ConfigTree> node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return *root_;
    }
    Level& level = stack_.back();
    node->key.clear();  // an alias brings the key of its source along
    node->key_place = {};
    if (level.node->kind == Kind::map) {
      node->key = std::move(level.key);
      node->key_place = level.key_place;
      level.has_key = false;
    }
    return level.node->append(std::move(node));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    check_tag(mark, tag);
    if (expects_key())
      fail(mark, fmt::format("a map needs text as its key, not {}: is a '{}' missing?", describe(kind),
                             kind == Kind::list ? ']' : '}'));
    ConfigTree& node = add(make(mark, kind));
    stack_.push_back({.node = &node, .anchor = anchor});
  }

  void close() {
    // Known to aliases only now: a value that contains itself has no end.
    remember(stack_.back().anchor, *stack_.back().node);
    stack_.pop_back();
  }

  void remember(YAML::anchor_t anchor, const ConfigTree& node) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
  }

  FileName file_;
  Place last_{file_, 1, 1};
  std::unique_ptr<ConfigTree> root_;
  std::vector<Level> stack_;
  std::size_t nodes_ = 0;
  std::unordered_map<YAML::anchor_t, const ConfigTree*> anchors_;
  std::vector<std::unique_ptr<ConfigTree>> anchored_keys_;
};

// yaml-cpp's terse messages for the usual mistakes, as advice; other messages are passed on.
std::string advice(const std::string& message, const TreeBuilder& builder) {
  const std::string start = builder.innermost_start();
  if (message == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "expected ',' or ']'" + start;
  if (message == YAML::ErrorMsg::END_OF_MAP_FLOW) return "expected ',' or '}'" + start;
  if (message == YAML::ErrorMsg::END_OF_SEQ || message == YAML::ErrorMsg::END_OF_MAP)
    return "this does not continue what stands above" + start + ": check indentation and quotes";
  if (message == YAML::ErrorMsg::MAP_VALUE)
    return "a ':' that does not follow a key: check the indentation, or put the text in quotes";
  if (message == YAML::ErrorMsg::BLOCK_ENTRY) return "a '-' where no list item can start: put the text in quotes";
  if (message == YAML::ErrorMsg::UNKNOWN_TOKEN)
    return "a value cannot start with this character: put the text in quotes";
  return message;
}

}  // namespace

std::unique_ptr<ConfigTree> parse_yaml(std::string_view text, FileName name) {
  check_text(text, name);
  // yaml-cpp 0.7 lets the end of the text close a quote or a bracket that the user forgot. An explicit end of the
  // document does not.
  std::string ended(text);
  if (!ended.ends_with('\n')) ended += '\n';
  ended += "...\n";
  std::istringstream stream(std::move(ended));
  TreeBuilder builder(name);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    // The mark of an open quote is lost; the last value before it is the nearest place that is known.
    if (e.msg == YAML::ErrorMsg::DOC_IN_SCALAR || e.msg == YAML::ErrorMsg::EOF_IN_SCALAR)
      throw ConfigError(builder.last_place().location(), "", "not valid YAML: here or below, a quote is not closed");
    throw ConfigError(place_of(e.mark, name).location(), "", "not valid YAML: " + advice(e.msg, builder));
  }
  auto root = builder.take_root();
  if (root == nullptr) root = std::make_unique<ConfigTree>();
  if (root->kind == Kind::null) root->place = Place{name, 1, 1};  // nothing but space and comments
  return root;
}

}  // namespace epocast::detail
