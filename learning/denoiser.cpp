// A small convolutional network that takes noise out of phantoms: 3 x 3 convolutions with rectified units, which
// predict the noise (as EDSR and DnCNN predict residuals). Loss: mean squared error; accuracy: peak signal to noise
// ratio [dB].
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "learning/phantoms.hpp"
#include "learning/problem.hpp"
#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

class Denoiser final : public Problem {
 public:
  Denoiser(const ProblemOptions& options, std::uint64_t seed)
      : side_(static_cast<Index>(options.get("side", 16))),
        noise_(options.get("noise", 0.1)),
        samples_(static_cast<std::int64_t>(options.get("samples", 160))),
        seed_(seed),
        shuffle_(samples_, combine(seed, 1)),
        clean_(draw_phantoms(samples_, static_cast<int>(side_), combine(seed, 2))),
        clean_test_(draw_phantoms(std::max<std::int64_t>(2, samples_ / 5), static_cast<int>(side_), combine(seed, 3))) {
    const auto layers = static_cast<std::size_t>(options.get("layers", 3));
    const auto channels = static_cast<Index>(options.get("channels", 4));
    for (std::size_t l = 0; l < layers; ++l) {
      convolutions_.push_back({l == 0 ? 1 : channels, l + 1 == layers ? 1 : channels, size_});
      size_ += static_cast<std::size_t>(convolutions_.back().outputs * (9 * convolutions_.back().inputs + 1));
    }
    columns_.resize(layers);
    activations_.resize(layers);
    noisy_ = with_noise(clean_, combine(seed, 5));
    noisy_test_ = with_noise(clean_test_, combine(seed, 6));
  }

  std::size_t size() const override { return size_; }
  std::int64_t samples() const override { return samples_; }
  std::string accuracy_name() const override { return "psnr"; }

  Values initial() const override {
    Values out(size_, 0);
    for (std::size_t l = 0; l < convolutions_.size(); ++l) {
      const Convolution& c = convolutions_[l];
      // The last layer begins near zero: the network begins as the identity.
      const double scale =
          (l + 1 == convolutions_.size() ? 0.1 : 1) * std::sqrt(2.0 / (9.0 * static_cast<double>(c.inputs)));
      for (std::size_t i = 0; i < static_cast<std::size_t>(9 * c.inputs * c.outputs); ++i)
        out[c.begin + i] = scale * normal(combine(combine(seed_, 7), c.begin + i));
    }
    return out;
  }

  void gradient(std::span<const double> at, std::span<const std::int64_t> positions, std::span<double> out) override {
    const Index pixels = side_ * side_;
    x_.resize(1, pixels * static_cast<Index>(positions.size()));
    y_.resize(1, x_.cols());
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const std::int64_t n = shuffle_(positions[k]);
      x_.middleCols(static_cast<Index>(k) * pixels, pixels) = image(noisy_, n);
      y_.middleCols(static_cast<Index>(k) * pixels, pixels) = image(clean_, n);
    }
    forward(at);
    // Loss: mean over pixels of (noisy - predicted noise - clean)^2.
    error_ = -2.0 / static_cast<double>(x_.cols()) * (x_ - activations_.back() - y_);
    for (std::size_t l = convolutions_.size(); l-- > 0;) {
      const Convolution& c = convolutions_[l];
      if (l + 1 < convolutions_.size()) error_ = (activations_[l].array() > 0).select(error_, 0);
      Eigen::Map<MatrixXd> weights(out.data() + c.begin, c.outputs, 9 * c.inputs);
      Eigen::Map<Eigen::VectorXd> bias(out.data() + c.begin + weights.size(), c.outputs);
      weights.noalias() = error_ * columns_[l].transpose();
      bias = error_.rowwise().sum();
      if (l == 0) break;
      const Eigen::Map<const MatrixXd> w(at.data() + c.begin, c.outputs, 9 * c.inputs);
      gathered_.noalias() = w.transpose() * error_;
      scatter(gathered_, c.inputs, error_);
    }
  }

  Evaluation evaluate(std::span<const double> at) override {
    const double training = mean_square(at, noisy_, clean_), testing = mean_square(at, noisy_test_, clean_test_);
    return {training, -10 * std::log10(testing)};
  }

 private:
  struct Convolution {
    Index inputs, outputs;
    std::size_t begin;  ///< of its parameters: weights by output, then biases
  };

  std::vector<double> with_noise(const std::vector<double>& clean, std::uint64_t key) const {
    std::vector<double> out = clean;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += noise_ * normal(combine(key, i));
    return out;
  }

  Eigen::Map<const Eigen::RowVectorXd> image(const std::vector<double>& set, std::int64_t n) const {
    return {set.data() + n * side_ * side_, side_ * side_};
  }

  double mean_square(std::span<const double> at, const std::vector<double>& noisy, const std::vector<double>& clean) {
    x_ = Eigen::Map<const Eigen::RowVectorXd>(noisy.data(), static_cast<Index>(noisy.size()));
    forward(at);
    return (x_ - activations_.back() - Eigen::Map<const Eigen::RowVectorXd>(clean.data(), x_.cols())).squaredNorm() /
           static_cast<double>(x_.cols());
  }

  /// Fills columns_ and activations_ from x_: channels by pixel, image after image.
  void forward(std::span<const double> at) {
    for (std::size_t l = 0; l < convolutions_.size(); ++l) {
      const Convolution& c = convolutions_[l];
      gather(l == 0 ? x_ : activations_[l - 1], c.inputs, columns_[l]);
      const Eigen::Map<const MatrixXd> w(at.data() + c.begin, c.outputs, 9 * c.inputs);
      const Eigen::Map<const Eigen::VectorXd> bias(at.data() + c.begin + w.size(), c.outputs);
      activations_[l].noalias() = w * columns_[l];
      activations_[l].colwise() += bias;
      if (l + 1 < convolutions_.size()) activations_[l] = activations_[l].cwiseMax(0);
    }
  }

  /// Calls visit(tap, pixel, neighbour) for all taps of the 3 x 3 kernel inside the image, of all images.
  template <class Visit>
  void for_each_tap(Index images, Visit visit) const {
    for (Index n = 0; n < images; ++n)
      for (Index dy = -1; dy <= 1; ++dy)
        for (Index dx = -1; dx <= 1; ++dx)
          for (Index row = std::max<Index>(0, -dy); row < std::min(side_, side_ - dy); ++row)
            for (Index column = std::max<Index>(0, -dx); column < std::min(side_, side_ - dx); ++column) {
              const Index pixel = (n * side_ + row) * side_ + column;
              visit(3 * (dy + 1) + dx + 1, pixel, pixel + dy * side_ + dx);
            }
  }
  void gather(const MatrixXd& from, Index channels, MatrixXd& to) const {
    to.setZero(9 * channels, from.cols());
    for_each_tap(from.cols() / (side_ * side_), [&](Index tap, Index pixel, Index neighbour) {
      for (Index c = 0; c < channels; ++c) to(tap * channels + c, pixel) = from(c, neighbour);
    });
  }
  void scatter(const MatrixXd& from, Index channels, MatrixXd& to) const {
    to.setZero(channels, from.cols());
    for_each_tap(from.cols() / (side_ * side_), [&](Index tap, Index pixel, Index neighbour) {
      for (Index c = 0; c < channels; ++c) to(c, neighbour) += from(tap * channels + c, pixel);
    });
  }

  Index side_;
  double noise_;
  std::int64_t samples_;
  std::uint64_t seed_;
  Shuffle shuffle_;
  std::vector<double> clean_, clean_test_, noisy_, noisy_test_;
  std::vector<Convolution> convolutions_;
  std::size_t size_ = 0;
  MatrixXd x_, y_, error_, gathered_;
  std::vector<MatrixXd> columns_, activations_;
};

}  // namespace

std::unique_ptr<Problem> make_phantoms(const ProblemOptions& options, std::uint64_t seed) {
  return std::make_unique<Denoiser>(options, seed);
}

}  // namespace epocast::learning
