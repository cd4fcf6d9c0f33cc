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

/// A table with aligned columns; numbers to the right.
std::string align_columns(const Cells& rows);
/// A table as Markdown writes it, such as a wiki or an issue shows; numbers to the right.
std::string markdown_table(const Cells& rows);

}  // namespace epocast
