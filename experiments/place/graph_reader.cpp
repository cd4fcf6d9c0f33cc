// Operator graphs from CSV and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "costmodels/csv_table.hpp"
#include "experiments/place/graph_draft.hpp"
#include "sim/config.hpp"
#include "sim/input_file.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

constexpr Range kSeconds{0, 1e6};
constexpr Range kBytes{0, 1e18};

/// These, and what `trace --operators` writes of a node and a graph does not need.
std::vector<std::string> with_keys_of_traces(std::vector<std::string> keys) {
  for (const char* key : {"operation", "layer", "step", "phase", "flop", "bytes_read", "bytes_written"})
    keys.emplace_back(key);
  return keys;
}

Lifetime parse_lifetime(const std::string& word, const Location& where) {
  for (const Lifetime lifetime : {Lifetime::normal, Lifetime::residual, Lifetime::reference})
    if (word == to_string(lifetime)) return lifetime;
  throw ConfigError(where, "lifetime",
                    fmt::format("unknown word '{}'{}", abridged(printable(word)),
                                name_hint(word, {"normal", "residual", "reference"})));
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "NODE:BYTES NODE:BYTES": the last colon of a word counts, as names may have some.
void add_inputs(GraphDraft& draft, const std::string& to, const std::string& text, const Location& where) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::size_t colon = word.rfind(':');
    const auto bytes = colon == std::string_view::npos ? std::nullopt : parse_number(word.substr(colon + 1));
    if (!bytes || *bytes < 0 || *bytes > kBytes.max)
      throw ConfigError(where, "inputs",
                        fmt::format("'{}' is not NODE:BYTES; write the bytes that are read, 0 for control only",
                                    abridged(printable(word))));
    draft.add_edge(word.substr(0, colon), to, *bytes, where);
  }
}

/// Counts lines as a parser goes on.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const LineCounter& a, const LineCounter& b) { return a.at_ == b.at_; }
  friend bool operator!=(const LineCounter& a, const LineCounter& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  int* line_;
};

/// {"nodes": [{...}], "edges": [[from, to, bytes]]} as its parts go by; other keys of the document are passed over, but
/// not of a node.
class JsonGraph {
 public:
  using Json = nlohmann::json;
  JsonGraph(GraphDraft& draft, std::string file, const int* line)
      : draft_(draft), file_(std::move(file)), line_(line) {}

  bool null() { return true; }
  bool boolean(bool) { return value("true or false", std::nullopt); }
  bool number_integer(Json::number_integer_t v) { return value(std::to_string(v), static_cast<double>(v)); }
  bool number_unsigned(Json::number_unsigned_t v) { return value(std::to_string(v), static_cast<double>(v)); }
  bool number_float(Json::number_float_t v, const std::string& text) { return value(text, v); }
  bool string(std::string& text) { return value(text, std::nullopt); }
  bool binary(Json::binary_t&) { return true; }
  bool start_object(std::size_t) {
    ++depth_;
    if (depth_ == 1) is_object_ = true;
    if (in_nodes() && depth_ == 3) node_ = Fields{here(), {}, {}, {}, {}, {}};
    if (in_edges() && depth_ >= 3) fail("edges", "an edge is a list: [from, to, bytes]");
    if (in_nodes() && depth_ > 3) fail("nodes", "a node is an object of words and numbers");
    return true;
  }
  bool end_object() {
    if (in_nodes() && depth_ == 3) finish_node();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    ++depth_;
    if (depth_ == 2) part_ = key_;
    if (in_edges() && depth_ == 3) edge_.clear();
    if (in_nodes() && depth_ == 3) fail("nodes", "a node is an object");
    return true;
  }
  bool end_array() {
    if (in_edges() && depth_ == 3) finish_edge();
    if (depth_ == 2) part_.clear();
    --depth_;
    return true;
  }
  bool key(std::string& text) {
    if (depth_ <= 3) key_ = text;
    if (in_nodes() && depth_ == 3) check_key(text);
    if (depth_ == 1 && (text == "nodes" || text == "edges")) (text == "nodes" ? has_nodes_ : has_edges_) = true;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& problem) {
    std::string text = problem.what();
    const std::size_t at = text.find(": ");
    throw ConfigError(here(), "", "not JSON: " + printable(at == std::string::npos ? text : text.substr(at + 2)));
  }
  void check_complete() const {
    if (!is_object_ || !has_nodes_ || !has_edges_)
      throw ConfigError(Location{file_, 1, 0}, "", "needs two lists, \"nodes\" and \"edges\"");
  }

 private:
  struct Fields {
    Location where;
    std::string name, lifetime, with;
    std::optional<double> seconds, bytes;
  };

  Location here() const { return {file_, *line_, 0}; }
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw ConfigError(here(), key, problem);
  }
  bool in_nodes() const { return part_ == "nodes"; }
  bool in_edges() const { return part_ == "edges"; }

  double number(const std::string& key, const std::string& text, std::optional<double> v, Range range) const {
    if (!v || !std::isfinite(*v)) fail(key, fmt::format("'{}' is not a number", abridged(printable(text))));
    if (*v < range.min || *v > range.max)
      fail(key, fmt::format("{} is not between {:g} and {:g}", *v, range.min, range.max));
    return *v;
  }

  bool value(const std::string& text, std::optional<double> v) {
    if (in_nodes() && depth_ == 2) fail("nodes", "a node is an object");
    if (in_edges() && depth_ == 2) fail("edges", "an edge is a list: [from, to, bytes]");
    if (in_edges() && depth_ == 3) {
      if (edge_.size() == 2) edge_bytes_ = number("edges", text, v, kBytes);
      edge_.push_back(text);
    }
    if (!in_nodes() || depth_ != 3) return true;
    if (key_ == "node") node_.name = text;
    if (key_ == "time_s") node_.seconds = number("time_s", text, v, kSeconds);
    if (key_ == "output_bytes") node_.bytes = number("output_bytes", text, v, kBytes);
    if (key_ == "lifetime") node_.lifetime = text;
    if (key_ == "with") node_.with = text;
    return true;
  }

  void check_key(const std::string& key) const {
    const auto known = with_keys_of_traces({"node", "time_s", "output_bytes", "lifetime", "with"});
    if (std::ranges::find(known, key) == known.end())
      fail("nodes", fmt::format("unknown key '{}'{}", abridged(printable(key)), name_hint(key, known)));
  }

  void finish_node() {
    if (node_.name.empty()) fail("nodes", "a node needs a name: \"node\"");
    const auto missing = [&](const char* key) {
      fail("nodes", fmt::format("node '{}' has no \"{}\"", abridged(printable(node_.name)), key));
    };
    if (!node_.seconds) missing("time_s");
    if (!node_.bytes) missing("output_bytes");
    draft_.add({node_.name, *node_.seconds, *node_.bytes,
                node_.lifetime.empty() ? Lifetime::normal : parse_lifetime(node_.lifetime, here()), node_.with,
                node_.where});
  }

  void finish_edge() {
    if (edge_.size() != 3)
      fail("edges", fmt::format("an edge is [from, to, bytes]; this one has {} values", edge_.size()));
    draft_.add_edge(edge_[0], edge_[1], edge_bytes_, here());
  }

  GraphDraft& draft_;
  std::string file_;
  const int* line_;
  int depth_ = 0;
  bool is_object_ = false, has_nodes_ = false, has_edges_ = false;
  std::string key_, part_;
  Fields node_;
  std::vector<std::string> edge_;
  double edge_bytes_ = 0;
};

}  // namespace

NamedGraph read_graph_csv(const std::string& text, const std::string& file) {
  std::istringstream in(text);
  const CsvTable table = CsvTable::read(in, file);
  table.check_columns({"node", "time_s", "output_bytes", "inputs"}, with_keys_of_traces({"lifetime", "with"}));
  GraphDraft draft;
  for (const CsvRow& row : table.rows()) {
    if (row.empty("node")) throw row.error("node", "a node needs a name");
    DraftNode node{.name = row.text("node"),
                   .seconds = row.number("time_s", kSeconds),
                   .bytes = row.number("output_bytes", kBytes),
                   .with = table.has("with") ? row.text("with") : "",
                   .where = {file, row.line(), 0}};
    if (table.has("lifetime") && !row.empty("lifetime"))
      node.lifetime = parse_lifetime(row.text("lifetime"), node.where);
    add_inputs(draft, node.name, row.text("inputs"), node.where);
    draft.add(std::move(node));
  }
  return draft.finish(file);
}

NamedGraph read_graph_json(const std::string& text, const std::string& file) {
  GraphDraft draft;
  int line = 1;
  JsonGraph graph(draft, file, &line);
  nlohmann::json::sax_parse(LineCounter(text.data(), &line), LineCounter(text.data() + text.size(), &line), &graph);
  graph.check_complete();
  return draft.finish(file);
}

NamedGraph read_any_json(const std::string& text, const std::string& file) {
  const auto has = [&](const char* key) { return text.find(key) != std::string::npos; };
  if (has("\"traceEvents\"")) return read_profiler_trace(text, file);
  if (has("\"edges\"")) return read_graph_json(text, file);
  for (const char* key : {"\"ctrl_deps\"", "\"ctrlDeps\"", "\"data_deps\"", "\"dataDeps\"", "\"durationMicros\""})
    if (has(key)) return read_chakra_trace(text, file);
  return read_graph_json(text, file);
}

NamedGraph read_graph_file(const std::string& file) {
  const std::string text = read_input_file(file);
  if (file.ends_with(".json")) return read_any_json(text, file);
  if (file.ends_with(".csv")) return read_graph_csv(text, file);
  throw ConfigError(file + ": an operator graph is a .csv or .json file; see docs/placement.md");
}

}  // namespace epocast
