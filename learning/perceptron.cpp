// A perceptron with one hidden layer of rectified linear units, softmax and cross entropy, on drawn digits.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "learning/digits.hpp"
#include "learning/problem.hpp"
#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
constexpr Index kClasses = 10;

/// The parameters, in this order: hidden weights (by input, then unit), hidden biases, output weights, output biases.
template <class Scalar>
struct Layers {
  using Matrix = Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const MatrixXd, MatrixXd>>;
  using Vector = Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const Eigen::VectorXd, Eigen::VectorXd>>;
  Layers(Scalar* at, Index inputs, Index hidden)
      : w1(at, hidden, inputs),
        b1(at + hidden * inputs, hidden),
        w2(at + hidden * (inputs + 1), kClasses, hidden),
        b2(at + hidden * (inputs + 1 + kClasses), kClasses) {}
  Matrix w1;
  Vector b1;
  Matrix w2;
  Vector b2;
};

class Digits final : public Problem {
 public:
  Digits(const ProblemOptions& options, std::uint64_t seed)
      : side_(static_cast<int>(options.get("side", 16))),
        hidden_(static_cast<Index>(options.get("hidden", 188))),
        samples_(static_cast<std::int64_t>(options.get("samples", 10000))),
        seed_(seed),
        shuffle_(samples_, combine(seed, 1)) {
    const double distortion = options.get("distortion", 0.2), noise = options.get("noise", 0.25);
    training_ = draw_digits(samples_, side_, distortion, noise, combine(seed, 2));
    testing_ = draw_digits(samples_ / 5, side_, distortion, noise, combine(seed, 3));
  }

  Index inputs() const { return Index{side_} * side_; }
  std::size_t size() const override { return static_cast<std::size_t>(hidden_ * (inputs() + 1 + kClasses) + kClasses); }
  std::int64_t samples() const override { return samples_; }

  /// He et al. 2015: variance 2 / inputs for rectified units.
  Values initial() const override {
    Values out(size(), 0);
    Layers<double> layers(out.data(), inputs(), hidden_);
    const std::uint64_t key = combine(seed_, 4);
    for (Index i = 0; i < layers.w1.size(); ++i)
      layers.w1.data()[i] =
          std::sqrt(2.0 / static_cast<double>(inputs())) * normal(combine(key, static_cast<std::uint64_t>(i)));
    for (Index i = 0; i < layers.w2.size(); ++i)
      layers.w2.data()[i] = std::sqrt(1.0 / static_cast<double>(hidden_)) *
                            normal(combine(key, static_cast<std::uint64_t>(layers.w1.size() + i)));
    return out;
  }

  void gradient(std::span<const double> at, std::span<const std::int64_t> positions, std::span<double> out) override {
    gradient_of_passes(at, at, positions, out);
  }

  void gradient_of_passes(std::span<const double> at, std::span<const double> back,
                          std::span<const std::int64_t> positions, std::span<double> out) override {
    const auto batch = static_cast<Index>(positions.size());
    x_.resize(inputs(), batch);
    answers_.resize(positions.size());
    for (Index k = 0; k < batch; ++k) {
      const auto n = static_cast<std::size_t>(shuffle_(positions[static_cast<std::size_t>(k)]));
      x_.col(k) = image(training_, n);
      answers_[static_cast<std::size_t>(k)] = training_.answers[n];
    }
    const Layers<const double> layers(at.data(), inputs(), hidden_);
    Layers<double> g(out.data(), inputs(), hidden_);
    forward(layers, x_);
    for (Index k = 0; k < batch; ++k) p_(answers_[static_cast<std::size_t>(k)], k) -= 1;
    p_ /= static_cast<double>(batch);
    g.w2.noalias() = p_ * h_.transpose();
    g.b2 = p_.rowwise().sum();
    dh_.noalias() = Layers<const double>(back.data(), inputs(), hidden_).w2.transpose() * p_;
    dh_ = (h_.array() > 0).select(dh_, 0);
    g.w1.noalias() = dh_ * x_.transpose();
    g.b1 = dh_.rowwise().sum();
  }

  Evaluation evaluate(std::span<const double> at) override {
    constexpr std::size_t kMost = 2000;  // of the training set: a loss to three digits is enough for a curve
    const Layers<const double> layers(at.data(), inputs(), hidden_);
    const std::size_t used = std::min(kMost, training_.answers.size());
    forward(layers, images(training_, used));
    double loss = 0;
    for (std::size_t n = 0; n < used; ++n)
      loss -= std::log(std::max(p_(training_.answers[n], static_cast<Index>(n)), 1e-300));
    if (!p_.allFinite()) loss = std::nan("");
    forward(layers, images(testing_, testing_.answers.size()));
    std::size_t right = 0;
    for (std::size_t n = 0; n < testing_.answers.size(); ++n) {
      Index best = 0;
      p_.col(static_cast<Index>(n)).maxCoeff(&best);
      right += best == testing_.answers[n] ? 1 : 0;
    }
    return {loss / static_cast<double>(used),
            static_cast<double>(right) / static_cast<double>(testing_.answers.size())};
  }

 private:
  Eigen::Map<const Eigen::VectorXd> image(const DigitImages& set, std::size_t n) const {
    return {set.pixels.data() + n * static_cast<std::size_t>(inputs()), inputs()};
  }
  Eigen::Map<const MatrixXd> images(const DigitImages& set, std::size_t count) const {
    return {set.pixels.data(), inputs(), static_cast<Index>(count)};
  }

  /// Fills h_ and p_: probabilities by class and image.
  template <class Input>
  void forward(const Layers<const double>& layers, const Input& x) {
    h_.noalias() = layers.w1 * x;
    h_.colwise() += layers.b1;
    h_ = h_.cwiseMax(0);
    p_.noalias() = layers.w2 * h_;
    p_.colwise() += layers.b2;
    for (Index k = 0; k < p_.cols(); ++k) {
      p_.col(k).array() -= p_.col(k).maxCoeff();
      p_.col(k) = p_.col(k).array().exp();
      p_.col(k) /= p_.col(k).sum();
    }
  }

  int side_;
  Index hidden_;
  std::int64_t samples_;
  std::uint64_t seed_;
  Shuffle shuffle_;
  DigitImages training_, testing_;
  MatrixXd x_, h_, p_, dh_;
  std::vector<int> answers_;
};

}  // namespace

std::unique_ptr<Problem> make_digits(const ProblemOptions& options, std::uint64_t seed) {
  return std::make_unique<Digits>(options, seed);
}

}  // namespace epocast::learning
