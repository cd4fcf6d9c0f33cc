#pragma once
// Text from users' files, for messages.

#include <cstddef>
#include <string>
#include <string_view>

namespace epocast {

/// Length of the UTF-8 sequence at the start of `text`, or 0 if there is none.
std::size_t utf8_length(std::string_view text);

/// One line that a terminal can show: control characters and what is not UTF-8 are escaped ("\n", "\x1b").
std::string printable(std::string_view text);

/// Without the middle of words and texts that are longer than anybody reads: "aaaaaa...".
std::string abridged(std::string_view text);

/// Without blanks at either end.
std::string trimmed(std::string_view text);

}  // namespace epocast
