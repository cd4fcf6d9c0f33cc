#pragma once
// Names what is in a text by 128 bits, so that equal texts are found without comparing them.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace epocast {

/// 32 hexadecimal digits that differ for different texts: of a million texts any two are equal with a probability of
/// 1e-27. Not for protection against those who want texts to collide.
std::string fingerprint(std::string_view text);

}  // namespace epocast
