// Fuzz target: any bytes either load as a document or throw ConfigError; whatever loads survives every reader, edit and
// the round trip through flow_text(). Links with clang's -fsanitize=fuzzer or with driver.cpp.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/config.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::require;

namespace {

template <class Action>
bool succeeds(Action action) {
  try {
    action();
    return true;
  } catch (const ConfigError& e) {
    const std::string_view message = e.what();
    require(!message.empty() && message.find('\n') == std::string_view::npos, "a message is one line");
    return false;
  }
}

template <class Q>
void check_quantity(Q (*parse)(std::string_view), const std::string& text) {
  try {
    const Q value = parse(text);
    require(std::isfinite(value.value), "a parsed quantity is finite");
    // Printing rounds to four digits, so what was printed parses back to within 5e-4.
    const Q again = parse(to_string(value));
    require(std::abs(again.value - value.value) <= 1e-3 * std::abs(value.value), "a printed quantity parses back");
  } catch (const std::invalid_argument&) {
    // Bad text: refused, as it should be.
  }
}

void walk(const ConfigNode& node) {
  require(node.is_map() + node.is_list() + node.is_scalar() + node.is_null() == 1, "a node has one kind");
  require(node.where().line > 0 && node.where().column > 0, "a node has a place");
  if (node.is_scalar()) {
    const std::string text = node.as_string();
    succeeds([&] { node.as_bool(); });
    succeeds([&] { node.as_int(); });
    succeeds([&] { node.as_int({1, 4}); });
    succeeds([&] { node.as_double({0, 1}); });
    succeeds([&] { node.as_seconds(); });
    check_quantity(parse_seconds, text);
    check_quantity(parse_bytes, text);
    check_quantity(parse_bytes_per_second, text);
    check_quantity(parse_flop, text);
    check_quantity(parse_flop_per_second, text);
  } else {
    require(!succeeds([&] { (void)node.as_string(); }), "only a scalar is text");
  }
  if (node.is_list()) {
    for (const ConfigNode& item : node.items()) walk(item);
  } else if (node.is_map()) {
    for (const std::string& key : node.keys()) {
      require(node.has(key), "a map has its keys");
      walk(node.at(key));
    }
  }
}

void check_edits(const ConfigNode& root) {
  const ConfigNode value = ConfigNode::load_text("{x: 1}", "--set");
  for (const char* key : {"workers", "strategy.name", "a.b.c", ""}) {
    succeeds([&] {
      const ConfigNode edited = root.with(key, value);
      succeeds([&] { edited.check_all_read(); });
      walk(edited);
    });
  }
  if (root.is_map()) {
    for (const std::string& key : root.keys()) {
      require(!root.without(key).has(key), "without() removes its key");
      succeeds([&] { root.with(key, root); });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  succeeds([&] {
    const ConfigNode root = ConfigNode::load_text(text, "fuzz.yaml");
    succeeds([&] { root.check_all_read(); });
    walk(root);
    root.check_all_read();  // walk() read every key
    check_edits(root);
    const std::string flow = root.flow_text();
    require(flow.find('\n') == std::string::npos, "flow text is one line");
    // Quoted brackets count against the parser's nesting check, so such text may be refused; anything else must return.
    std::size_t brackets = 0;
    for (const char c : flow) brackets += c == '[' || c == '{';
    const bool loads = succeeds([&] {
      const ConfigNode again = ConfigNode::load_text(flow, "flow");
      require(again.flow_text() == flow, "flow text reads back as the same document");
    });
    if (!loads && brackets <= 1000) std::fprintf(stderr, "%s\n", flow.c_str());
    require(loads || brackets > 1000, "flow text loads");
  });
  return 0;
}
