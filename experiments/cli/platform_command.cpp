#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <system_error>

#include "experiments/cli/commands.hpp"
#include "platforms/pod_generator.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

namespace fs = std::filesystem;

struct PlatformArguments {
  std::string family;
  int nodes = 0;
  double oversubscription = 1;
  std::string file;
};

/// A regular file appears whole or not at all.
void write_file(const fs::path& file, const std::string& text) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(file, error).type();
  const bool in_place = type != fs::file_type::regular && type != fs::file_type::not_found;  // such as /dev/stdout
  fs::path part = file;
  if (!in_place) part.replace_filename(fmt::format(".{}.{}.part", file.filename().string(), ::getpid()));
  error.clear();
  {
    errno = 0;
    std::ofstream out(part, std::ios::binary);
    out << text << std::flush;
    if (!out) error.assign(errno != 0 ? errno : EIO, std::generic_category());
  }
  if (!error && !in_place) fs::rename(part, file, error);
  if (!error) return;
  const std::string problem = error.message();
  if (!in_place) fs::remove(part, error);
  throw ConfigError(Location{file.string()}, "", "cannot write this platform: " + problem);
}

int generate(const PlatformArguments& arguments) {
  const std::string text = pod_platform(arguments.family, arguments.nodes, arguments.oversubscription);
  if (arguments.file.empty() || arguments.file == "-")
    std::cout << text;
  else
    write_file(arguments.file, text);
  return kDone;
}

}  // namespace

void add_platform_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<PlatformArguments>();
  CLI::App* command = app.add_subcommand("platform",
                                         "Write the platform file of a pod of any size.\n"
                                         "Example: epocast platform dgx_h100_pod --nodes 32 -o pod.xml");
  command->add_option("family", arguments->family, fmt::format("{}", fmt::join(pod_families(), " or ")))->required();
  command->add_option("--nodes", arguments->nodes, fmt::format("number of nodes, 1 to {}", kMostPodNodes))->required();
  command
      ->add_option("--oversubscription", arguments->oversubscription,
                   "bandwidth below the leaf switches over that above them; matters from 33 nodes on")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->file, "file to write; standard output if not given");
  command->callback([arguments, &context] { context.action = [arguments] { return generate(*arguments); }; });
}

}  // namespace epocast
