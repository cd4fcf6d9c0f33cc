// Loads a platform that came with the installed epocast, and prints how many devices it has.

#include <cstdio>
#include <exception>
#include <filesystem>

#include "platforms/platform_loader.hpp"
#include "platforms/probe.hpp"

int main() try {
  const auto file = std::filesystem::path(EPOCAST_DATA_DIR) / "platforms" / "skylake_opa.xml";
  const epocast::Cluster cluster = epocast::load_platform(file);
  epocast::probe_platform(cluster);  // needs SimGrid, too
  std::printf("%s: %zu devices\n", cluster.name.c_str(), cluster.devices.size());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
