#include "sim/fingerprint.hpp"

#include <fmt/format.h>

#include "sim/mix_bits.hpp"

namespace epocast {

std::string fingerprint(std::string_view text) {
  // Two chains over the same words, each of bijections, so that texts that differ in one word never meet in either.
  std::uint64_t first = text.size(), second = ~first;
  for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    const std::string_view part = text.substr(at, sizeof word);
    for (std::size_t b = 0; b < part.size(); ++b)  // the same on every machine
      word |= std::uint64_t{static_cast<unsigned char>(part[b])} << (8 * b);
    first = mix_bits(first ^ word);
    second = mix_bits(second + word * 0xd6e8feb86659fd93U);
  }
  return fmt::format("{:016x}{:016x}", mix_bits(first), mix_bits(second));
}

}  // namespace epocast
