#pragma once
// What is known of the terminal that output goes to.

#include <cstddef>
#include <iosfwd>
#include <string>

namespace epocast {

/// How many characters a line of `out` has room for: as COLUMNS says, or the terminal. 0 if `out` is not standard
/// output or goes to a file or another program, where lines may be as long as they are.
std::size_t line_width(const std::ostream& out);

/// How text stands out.
enum class Style { heading, notice, problem };

/// Whether `out`, standard output or standard error, goes to a terminal that shows colours to somebody who wants them:
/// not with NO_COLOR (https://no-color.org), nor where TERM says that it is dumb.
bool has_colours(const std::ostream& out);
/// The text in that style if there are colours.
std::string styled(const std::string& text, Style style, bool colours);

}  // namespace epocast
