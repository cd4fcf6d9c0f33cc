#pragma once
// Cells of text as a table.

#include <cstddef>
#include <string>
#include <vector>

namespace epocast {

/// Rows of cells; the first is the header.
using Cells = std::vector<std::vector<std::string>>;

/// Characters rather than bytes.
std::size_t display_width(const std::string& text);
/// Text for a cell or a line of Markdown, in which it means nothing else.
std::string markdown(const std::string& text);

/// Leaves out columns, by their headers in the order of `dispensable`, until an aligned table is at most `width`
/// characters wide or none of them is left. Gives those left out.
std::vector<std::string> fit_columns(Cells& rows, std::size_t width, const std::vector<std::string>& dispensable);
/// Breaks a line between words so that none is longer than `width` characters, as far as words allow; what follows
/// the first begins with `indent` spaces.
std::string wrapped(const std::string& line, std::size_t width, std::size_t indent);

/// A table with aligned columns; numbers to the right.
std::string align_columns(const Cells& rows);
/// A table as Markdown writes it, such as a wiki or an issue shows; numbers to the right.
std::string markdown_table(const Cells& rows);

}  // namespace epocast
