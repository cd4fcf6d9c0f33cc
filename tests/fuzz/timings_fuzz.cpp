// Fuzz target: any bytes either load as timings or measurements, or throw ConfigError; what loads keeps the invariants
// that fitting relies on. Links with clang's -fsanitize=fuzzer or with driver.cpp.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "costmodels/kernel_measurements.hpp"
#include "costmodels/network_calibration.hpp"
#include "costmodels/timings_file.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::attempt;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    std::istringstream in(text);
    for (const TimingRow& row : read_timings(in, "fuzz.csv").rows)
      require(std::isfinite(row.forward.value), "times are finite");
  });
  attempt([&] {
    std::istringstream in(text);
    const CsvTable table = CsvTable::read(in, "fuzz.csv");
    require(!table.rows().empty(), "a table has rows");
    attempt([&] {
      for (const KernelTiming& timing : read_kernel_measurements(table).timings) {
        const KernelWork work = kernel_work(timing.shape);
        require(timing.time.value > 0 && std::isfinite(timing.time.value), "times are positive");
        require(work.bytes > 0 && std::isfinite(work.bytes) && std::isfinite(work.flop), "work is finite");
        for (const double x : work.features) require(std::isfinite(x), "coordinates are finite");
      }
    });
    attempt([&] {
      for (const CollectiveTiming& timing : read_network_measurements(table).timings)
        require(timing.ranks >= 2 && timing.bytes > 0 && timing.time.value > 0, "collectives are real");
    });
  });
  return 0;
}
