#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "platforms/pod_generator.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"

namespace epocast {
namespace {

struct PlatformArguments {
  std::string family;
  int nodes = 0;
  double oversubscription = 1;
  std::string file;
};

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
