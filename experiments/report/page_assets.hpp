#pragma once
// Files that became part of the program when it was built.

#include <string_view>

namespace epocast {

std::string_view report_template();  ///< page/index.html
std::string_view report_style();     ///< page/style.css
std::string_view report_script();    ///< page/src, bundled; empty without npm

}  // namespace epocast
