// Fuzz target: any bytes are an operator graph in CSV or JSON, a trace, or ConfigError; and a graph that is not too
// large can be placed, and its placement read again. Links with clang's -fsanitize=fuzzer or with driver.cpp.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "experiments/place/place_job.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::require;

namespace {

constexpr std::size_t kMostNodes = 200;

void place(const NamedGraph& named) {
  const PlacementGraph& graph = named.graph;
  require(named.nodes.size() == graph.size(), "every node has a name");
  for (std::size_t e = 0; e < graph.edges(); ++e) require(graph.from[e] < graph.to[e], "nodes are in order");
  if (graph.size() > kMostNodes) return;
  for (const double bytes : graph.bytes)
    if (bytes > 1e12) return;  // transfers of years
  PlacementMachine machine{2, to_ticks(1e-6), 1e9, 0};
  const PlacementStage free = pardnn(graph, machine, {.search_nodes = 1000}).back();
  require(free.makespan >= graph.total_time() / 2, "two devices do not do more than twice the work");
  machine.memory = 0.7 * free.peak_bytes;
  const PlacementStage fitted = pardnn(graph, machine, {.search_nodes = 1000}).back();
  require(!fitted.fits || fitted.peak_bytes <= machine.memory || machine.memory == 0, "what fits is below the limit");
  std::ostringstream out;
  write_placement(out, named, fitted.placement);
  require(read_placement(out.str(), "again.csv", named, 2) == fitted.placement, "what is written is what was placed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool csv : {false, true}) try {
      place(csv ? read_graph_csv(text, "fuzz.csv") : read_any_json(text, "fuzz.json"));
    } catch (const ConfigError& error) {
      require(*error.what() != 0, "errors say something");
    }
  return 0;
}
