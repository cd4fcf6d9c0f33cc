#include <new>

#include "experiments/cli/commands.hpp"

int main(int argc, char** argv) {
  try {
    return epocast::run_command_line(argc, argv, epocast::builtin_registries());
  } catch (const std::bad_alloc&) {
    return epocast::report_lack_of_memory();  // not even enough to begin
  }
}
