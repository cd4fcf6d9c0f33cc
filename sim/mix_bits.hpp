#pragma once
// Random-looking bits from counters and values, for noise and for hashes.

#include <cstdint>

namespace epocast {

/// SplitMix64 (Steele, Lea, Flood 2014): a bijection in which each bit of `x` changes about half of all bits.
inline std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace epocast
