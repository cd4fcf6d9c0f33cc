#pragma once
// How much commands say beside their results: `-q`, `-v`.

#include <string>

namespace epocast {

enum class Verbosity {
  quiet,    ///< results and errors
  usual,    ///< and progress, notes and warnings
  verbose,  ///< and which program and data this is, which files were read, how long it took
};

/// Set by the command line before a command runs.
inline Verbosity verbosity = Verbosity::usual;

/// "note: ..." on stderr, unless quiet.
void print_note(const std::string& text);

}  // namespace epocast
