#pragma once
// Steps along gradients.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace epocast::learning {

struct OptimizerSettings {
  enum Kind { sgd, adam } kind = sgd;
  double momentum = 0;                                ///< of sgd: v = momentum v + g, x -= rate v (Polyak 1964)
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of adam (Kingma and Ba 2015)
};

/// One optimizer's memory of all parameters. Pieces of them can be stepped one by one.
class ParameterOptimizer {
 public:
  explicit ParameterOptimizer(const OptimizerSettings& settings) : settings_(settings) {}

  /// Moves the values [begin, begin + gradient.size()) of `parameters` along the gradient, by `rate`.
  void step(std::vector<double>& parameters, std::size_t begin, std::span<const double> gradient, double rate);

 private:
  OptimizerSettings settings_;
  std::vector<double> first_, second_;  ///< moments
  std::vector<std::int64_t> steps_;     ///< by the value at which a piece begins
};

}  // namespace epocast::learning
