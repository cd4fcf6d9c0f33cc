// Fuzz target: any bytes are either a platform or a ConfigError with a one-line message. SimGrid takes no part.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "platforms/platform_loader.hpp"
#include "sim/error.hpp"

using namespace epocast;

namespace {

// Not assert(): a fuzzer must see failures in release builds too.
void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "platform_fuzz: broken property: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Cluster cluster = parse_platform({reinterpret_cast<const char*>(data), size}, "fuzz.xml");
    require(!cluster.devices.empty(), "a platform has devices");
    for (const Device& device : cluster.devices) {
      require(!device.name.empty() && !device.node.empty(), "a device has a name and a node");
      require(device.cores > 0 && device.peak_rate.value > 0 && device.memory.value > 0, "figures are positive");
    }
  } catch (const ConfigError& error) {
    const std::string_view message = error.what();
    require(message.starts_with("fuzz.xml"), "a message names the file");
    require(message.find('\n') == std::string_view::npos, "a message is one line");
  }
  return 0;
}
