// Fuzz target: any bytes given as somebody else's profile (profiler trace, PipeDream graph, table)
// either load or throw ConfigError; what loads keeps the invariants that fitting relies on. Links with
// clang's -fsanitize=fuzzer or with driver.cpp.

#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "experiments/calibrate/import.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::require;

namespace {

/// The importers read files: one for this process, gone at its end.
class InputFile {
 public:
  explicit InputFile(const char* extension)
      : path_(std::filesystem::temp_directory_path() / ("epocast-fuzz-" + std::to_string(getpid()) + extension)) {}
  ~InputFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  void import(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    ImportOptions options;
    options.device = "d";
    try {
      for (const KernelTiming& timing : import_kernels(path_, options).timings) {
        const KernelWork work = kernel_work(timing.shape);
        require(timing.time.value > 0 && std::isfinite(timing.time.value), "times are positive");
        require(work.bytes > 0 && std::isfinite(work.bytes) && std::isfinite(work.flop), "work is finite");
      }
    } catch (const ConfigError& error) {
      require(*error.what() != '\0', "errors say something");
    }
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFile trace(".json"), graph(".txt"), table(".csv");
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{') || text.starts_with('[')) trace.import(text);
  graph.import(text);
  table.import(text);
  return 0;
}
