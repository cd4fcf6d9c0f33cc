#pragma once
// Random numbers without a state: each is a function of a key, so that the order in which workers draw does not matter.

#include <cstdint>

namespace epocast::learning {

/// Uniform in (0, 1).
double uniform(std::uint64_t key);
/// Standard normal (Box and Muller 1958).
double normal(std::uint64_t key);
/// A key that depends on both in a random-looking way.
std::uint64_t combine(std::uint64_t a, std::uint64_t b);

/// Goes through a data set of `size` samples, each epoch in another order, which it computes and does not keep: a
/// Feistel network of four rounds over the next power of four, walked until it falls inside (Black and Rogaway 2002).
class Shuffle {
 public:
  Shuffle(std::int64_t size, std::uint64_t seed);
  /// The sample at a position 0, 1, 2, ... of training: position / size is the epoch.
  std::int64_t operator()(std::int64_t position) const;

 private:
  std::uint64_t permuted(std::uint64_t value, std::uint64_t key) const;
  std::int64_t size_;
  std::uint64_t seed_;
  int half_bits_ = 1;
};

}  // namespace epocast::learning
