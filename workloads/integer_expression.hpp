#pragma once
// Arithmetic in model files: $(4*width), $((depth-4)/6).

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace epocast {

/// The value of `text`: integers, names, + - * /, minus signs and parentheses, with the usual precedence. A division
/// must leave no remainder: half a layer is a mistake. `lookup` gives the value of a name and may throw.
/// Throws std::invalid_argument with the problem in words, also if a result exceeds 2^53.
std::int64_t evaluate_expression(std::string_view text, const std::function<std::int64_t(const std::string&)>& lookup);

}  // namespace epocast
