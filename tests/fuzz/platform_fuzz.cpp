// Fuzz target: any bytes are either a platform or a ConfigError with a one-line message. SimGrid takes no part.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platforms/platform_loader.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::require;

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
