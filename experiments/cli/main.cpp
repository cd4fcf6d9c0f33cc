#include "experiments/cli/commands.hpp"

int main(int argc, char** argv) { return epocast::run_command_line(argc, argv, epocast::builtin_registries()); }
