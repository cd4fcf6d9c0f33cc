// Fuzz target: any bytes are a hypergraph in PaToH's format that survives being written and read again, or ConfigError;
// and a partition of it, or ConfigError. Links with clang's -fsanitize=fuzzer or with driver.cpp.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "experiments/partition/patoh_file.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    std::istringstream in(text);
    const Hypergraph graph = read_patoh(in, "fuzz.patoh");
    if (graph.vertices() > 10000) return 0;
    std::stringstream again;
    write_patoh(again, graph);
    const Hypergraph copy = read_patoh(again, "again.patoh");
    require(copy.vertices() == graph.vertices() && copy.nets() == graph.nets() && copy.pin_count() == graph.pin_count(),
            "what is written is what was read");
  } catch (const ConfigError& error) {
    require(*error.what() != 0, "errors say something");
  }
  try {
    std::istringstream in(text);
    const Partition partition = read_partition(in, "fuzz.part", 7, 0);
    require(partition.part_of.size() == 7, "every vertex has a part");
    for (const int part : partition.part_of) require(part >= 0 && part < partition.parts, "parts exist");
  } catch (const ConfigError& error) {
    require(*error.what() != 0, "errors say something");
  }
  return 0;
}
