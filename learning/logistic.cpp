// Logistic regression on two normal distributions whose means are some standard deviations apart.
#include <Eigen/Core>
#include <cmath>

#include "learning/problem.hpp"
#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

using Eigen::Index;
using ConstVector = Eigen::Map<const Eigen::VectorXd>;

/// Features by column, the last of them 1; answers +1 and -1.
struct LabelledPoints {
  Eigen::MatrixXd features;
  Eigen::VectorXd answers;
};

LabelledPoints draw(std::int64_t count, Index size, double separation, std::uint64_t seed) {
  LabelledPoints out{Eigen::MatrixXd(size + 1, count), Eigen::VectorXd(count)};
  const double shift = separation / 2 / std::sqrt(static_cast<double>(size));  // along the diagonal
  for (Index n = 0; n < count; ++n) {
    const std::uint64_t key = combine(seed, static_cast<std::uint64_t>(n));
    out.answers[n] = uniform(key) < 0.5 ? -1 : 1;
    for (Index i = 0; i < size; ++i)
      out.features(i, n) = out.answers[n] * shift + normal(combine(key, static_cast<std::uint64_t>(i)));
    out.features(size, n) = 1;
  }
  return out;
}

class Logistic final : public Problem {
 public:
  Logistic(const ProblemOptions& options, std::uint64_t seed)
      : samples_(static_cast<std::int64_t>(options.get("samples", 10000))),
        decay_(options.get("decay", 1e-3)),
        shuffle_(samples_, combine(seed, 1)) {
    const auto size = static_cast<Index>(options.get("size", 20));
    const double separation = options.get("separation", 2);
    training_ = draw(samples_, size, separation, combine(seed, 2));
    testing_ = draw(samples_ / 5, size, separation, combine(seed, 3));
  }

  std::size_t size() const override { return static_cast<std::size_t>(training_.features.rows()); }
  std::int64_t samples() const override { return samples_; }
  Values initial() const override { return Values(size(), 0); }

  void gradient(std::span<const double> at, std::span<const std::int64_t> positions, std::span<double> out) override {
    const ConstVector w(at.data(), static_cast<Index>(at.size()));
    Eigen::Map<Eigen::VectorXd> g(out.data(), static_cast<Index>(out.size()));
    g.setZero();
    for (const std::int64_t position : positions) {
      const Index n = shuffle_(position);
      const double y = training_.answers[n];
      const double margin = y * training_.features.col(n).dot(w);
      g -= y / (1 + std::exp(margin)) * training_.features.col(n);
    }
    g = g / static_cast<double>(positions.size()) + decay_ * w;
  }

  Evaluation evaluate(std::span<const double> at) override {
    const ConstVector w(at.data(), static_cast<Index>(at.size()));
    const Eigen::ArrayXd margins = training_.answers.array() * (training_.features.transpose() * w).array();
    // log(1 + exp(-m)) without overflow.
    const double loss = ((-margins).max(0) + (1 + (-margins.abs()).exp()).log()).mean() + decay_ / 2 * w.squaredNorm();
    const Eigen::ArrayXd tested = testing_.answers.array() * (testing_.features.transpose() * w).array();
    return {loss, static_cast<double>((tested > 0).count()) / static_cast<double>(tested.size())};
  }

 private:
  std::int64_t samples_;
  double decay_;
  Shuffle shuffle_;
  LabelledPoints training_, testing_;
};

}  // namespace

std::unique_ptr<Problem> make_logistic(const ProblemOptions& options, std::uint64_t seed) {
  return std::make_unique<Logistic>(options, seed);
}

}  // namespace epocast::learning
