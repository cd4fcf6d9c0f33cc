// Noisy quadratic: loss = sum_i h_i x_i^2 / 2, and a sample's gradient is h_i x_i plus normal noise. The model in which
// staleness, averaging and batch size have closed forms (tests/unit/learning_theory_test.cpp).
#include <cmath>

#include "learning/problem.hpp"
#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

class Quadratic final : public Problem {
 public:
  Quadratic(const ProblemOptions& options, std::uint64_t seed)
      : curvature_(options.spectrum),
        noise_(options.get("noise", 1)),
        distance_(options.get("distance", 1)),
        samples_(static_cast<std::int64_t>(options.get("samples", 1000))),
        seed_(seed) {
    if (!curvature_.empty()) return;
    // Evenly spaced on a logarithmic scale.
    const auto size = static_cast<std::size_t>(options.get("size", 10));
    const double condition = options.get("condition", 10);
    for (std::size_t i = 0; i < size; ++i)
      curvature_.push_back(
          std::pow(condition, size == 1 ? 0 : -static_cast<double>(i) / static_cast<double>(size - 1)));
  }

  std::size_t size() const override { return curvature_.size(); }
  std::int64_t samples() const override { return samples_; }
  Values initial() const override { return Values(size(), distance_); }
  std::string accuracy_name() const override { return ""; }

  void gradient(std::span<const double> at, std::span<const std::int64_t> positions, std::span<double> out) override {
    for (std::size_t i = 0; i < size(); ++i) out[i] = curvature_[i] * at[i];
    if (noise_ == 0) return;
    const double scale = noise_ / static_cast<double>(positions.size());
    for (const std::int64_t position : positions) {
      const std::uint64_t key = combine(seed_, static_cast<std::uint64_t>(position));
      for (std::size_t i = 0; i < size(); ++i) out[i] += scale * normal(combine(key, i));
    }
  }

  Evaluation evaluate(std::span<const double> at) override {
    double loss = 0;
    for (std::size_t i = 0; i < size(); ++i) loss += curvature_[i] * at[i] * at[i] / 2;
    return {loss};
  }

 private:
  Values curvature_;
  double noise_, distance_;
  std::int64_t samples_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Problem> make_quadratic(const ProblemOptions& options, std::uint64_t seed) {
  return std::make_unique<Quadratic>(options, seed);
}

}  // namespace epocast::learning
