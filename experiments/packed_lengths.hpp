#pragma once
// Sequences of unequal length, packed into samples of a network's length, each of which attends to itself alone.
//
// A sample of L positions holds sequences whose lengths l add up to L, so that attention costs their sum of squares.
// With m1 and m2 the means of l and l^2, it has L / m1 sequences, and on average m2 / m1 L of the L^2 pairs of
// positions. From sample to sample the sum of squares has the variance (L / m1) var(l^2 - l m2 / m1): of a reward that
// is renewed with every sequence (W. L. Smith 1955, "Regenerative stochastic processes", Proc. Royal Society A 232). A
// step waits for the replica whose samples cost most: n replicas of k samples wait on average for 1 + cv / sqrt(k)
// times the expected maximum of n normal draws.
//
// Scope and limits: samples are full (the last sequence of one is cut and goes on in the next), sequences longer than L
// are cut into pieces of L and a rest; products, norms and losses cost the same; replicas draw anew in every step.

#include <map>
#include <utility>
#include <vector>

#include "sim/config.hpp"
#include "sim/model.hpp"

namespace epocast {

class PackedLengths {
 public:
  /// Reads `{mean: 700, cv: 1.5}`, log-normal lengths, or a list of [length, share of sequences]. Throws ConfigError.
  explicit PackedLengths(const ConfigNode& node);

  /// Of samples of so many positions.
  struct Squares {
    double share = 1;  ///< mean sum of squares over length^2
    double cv = 0;     ///< of a sample's sum: standard deviation over mean
  };
  Squares in(double length) const;

  /// A network whose attention reads packed sequences. Throws ConfigError if it has none.
  Model packed(Model model) const;
  /// How much longer than the mean attention of the slowest of so many replicas takes, each with so many samples.
  /// REQUIRES: a model has been packed.
  double slowest(double replicas, double samples) const;

 private:
  ConfigNode place_;
  std::vector<std::pair<double, double>> lengths_;  ///< with their shares, which add up to 1
  mutable double cv_ = 0;                           ///< of the network's longest attention
};

}  // namespace epocast
