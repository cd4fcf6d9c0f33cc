#include "workloads/operators/operator_writer.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

namespace epocast {
namespace {

/// Valid JSON, and so a valid string of GraphViz too, whatever bytes a name from a user's file has.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Writes through a buffer: graphs have hundreds of thousands of lines.
class Lines {
 public:
  explicit Lines(std::ostream& out) : out_(out) {}
  ~Lines() { flush(); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Arguments>(arguments)...);
    if (buffer_.size() > kFlushAt) flush();
  }

 private:
  static constexpr std::size_t kFlushAt = 1 << 16;
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }
  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

std::string step_text(const OperatorGraph& graph, std::size_t n) {
  return graph.step[n] < 0 ? "" : std::to_string(graph.step[n]);
}

}  // namespace

void write_operators_csv(std::ostream& out, const OperatorGraph& graph) {
  Lines lines(out);
  lines.add("node,operation,layer,step,phase,lifetime,flop,bytes_read,bytes_written,output_bytes,inputs\n");
  for (std::size_t n = 0; n < graph.size(); ++n) {
    lines.add("{},{},{},{},{},{},{},{},{},{},", n, graph.operation_of(n), graph.layers[graph.layer[n]],
              step_text(graph, n), to_string(graph.phase[n]), to_string(graph.lifetime[n]), graph.flop[n],
              graph.bytes_read[n], graph.bytes_written[n], graph.output_bytes[n]);
    for (std::uint32_t i = graph.in_begin[n]; i < graph.in_begin[n + 1]; ++i)
      lines.add("{}{}:{}", i == graph.in_begin[n] ? "" : " ", graph.producer[i], graph.edge_bytes[i]);
    lines.add("\n");
  }
}

void write_operators_json(std::ostream& out, const OperatorGraph& graph) {
  Lines lines(out);
  lines.add("{{\"model\": {}, \"batch\": {},\n\"nodes\": [\n", quoted(graph.model), graph.batch);
  for (std::size_t n = 0; n < graph.size(); ++n)
    lines.add(
        "{{\"node\": {}, \"operation\": {}, \"layer\": {}, \"step\": {}, \"phase\": \"{}\", \"lifetime\": \"{}\", "
        "\"flop\": {}, \"bytes_read\": {}, \"bytes_written\": {}, \"output_bytes\": {}}}{}\n",
        n, quoted(graph.operation_of(n)), quoted(graph.layers[graph.layer[n]]),
        graph.step[n] < 0 ? "null" : step_text(graph, n), to_string(graph.phase[n]), to_string(graph.lifetime[n]),
        graph.flop[n], graph.bytes_read[n], graph.bytes_written[n], graph.output_bytes[n],
        n + 1 < graph.size() ? "," : "");
  lines.add("],\n\"edges\": [\n");
  for (std::size_t n = 0; n < graph.size(); ++n)
    for (std::uint32_t i = graph.in_begin[n]; i < graph.in_begin[n + 1]; ++i)
      lines.add("[{}, {}, {}]{}\n", graph.producer[i], n, graph.edge_bytes[i], i + 1 < graph.edges() ? "," : "");
  lines.add("]}}\n");
}

void write_operators_dot(std::ostream& out, const OperatorGraph& graph) {
  Lines lines(out);
  lines.add("digraph {{\n");
  for (std::size_t n = 0; n < graph.size(); ++n)
    lines.add("{} [label={}]\n", n, quoted(graph.operation_of(n) + " " + graph.layers[graph.layer[n]]));
  for (std::size_t n = 0; n < graph.size(); ++n)
    for (const std::uint32_t p : graph.producers(n)) lines.add("{} -> {}\n", p, n);
  lines.add("}}\n");
}

}  // namespace epocast
