#include "experiments/cli/commands.hpp"

namespace epocast {

void add_reproduce_command(CLI::App&, CommandContext&) {}

}  // namespace epocast
