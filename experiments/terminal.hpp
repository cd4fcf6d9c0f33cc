#pragma once
// What is known of the terminal that output goes to.

#include <cstddef>
#include <iosfwd>

namespace epocast {

/// How many characters a line of `out` has room for: as COLUMNS says, or the terminal. 0 if `out` is not standard
/// output or goes to a file or another program, where lines may be as long as they are.
std::size_t line_width(const std::ostream& out);

}  // namespace epocast
