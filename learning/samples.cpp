#include "learning/samples.hpp"

#include <cmath>
#include <numbers>

#include "sim/mix_bits.hpp"

namespace epocast::learning {

double uniform(std::uint64_t key) { return (static_cast<double>(mix_bits(key) >> 11) + 0.5) * 0x1p-53; }

double normal(std::uint64_t key) {
  return std::sqrt(-2 * std::log(uniform(key))) * std::cos(2 * std::numbers::pi * uniform(key ^ 0x5851f42d4c957f2dU));
}

std::uint64_t combine(std::uint64_t a, std::uint64_t b) { return mix_bits(mix_bits(a) ^ b); }

Shuffle::Shuffle(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
  while (std::int64_t{1} << (2 * half_bits_) < size) ++half_bits_;
}

std::uint64_t Shuffle::permuted(std::uint64_t value, std::uint64_t key) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t next = left ^ (combine(key + round, right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::int64_t Shuffle::operator()(std::int64_t position) const {
  const std::uint64_t key = combine(seed_, static_cast<std::uint64_t>(position / size_));
  auto value = static_cast<std::uint64_t>(position % size_);
  do value = permuted(value, key);
  while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

}  // namespace epocast::learning
