#include "learning/optimizer.hpp"

#include <cmath>

namespace epocast::learning {

void ParameterOptimizer::step(std::vector<double>& parameters, std::size_t begin, std::span<const double> gradient,
                              double rate) {
  const std::size_t size = gradient.size();
  if (settings_.kind == OptimizerSettings::sgd) {
    if (settings_.momentum == 0) {
      for (std::size_t i = 0; i < size; ++i) parameters[begin + i] -= rate * gradient[i];
      return;
    }
    first_.resize(parameters.size(), 0);
    for (std::size_t i = 0; i < size; ++i) {
      double& velocity = first_[begin + i];
      velocity = settings_.momentum * velocity + gradient[i];
      parameters[begin + i] -= rate * velocity;
    }
    return;
  }
  first_.resize(parameters.size(), 0);
  second_.resize(parameters.size(), 0);
  steps_.resize(parameters.size(), 0);
  if (size == 0) return;
  const auto n = static_cast<double>(++steps_[begin]);
  const double first_bias = 1 - std::pow(settings_.beta1, n), second_bias = 1 - std::pow(settings_.beta2, n);
  for (std::size_t i = 0; i < size; ++i) {
    double &m = first_[begin + i], &v = second_[begin + i];
    m = settings_.beta1 * m + (1 - settings_.beta1) * gradient[i];
    v = settings_.beta2 * v + (1 - settings_.beta2) * gradient[i] * gradient[i];
    parameters[begin + i] -= rate * (m / first_bias) / (std::sqrt(v / second_bias) + settings_.epsilon);
  }
}

}  // namespace epocast::learning
