// A small convolutional network that takes noise out of phantoms: 3 x 3 convolutions with rectified units, in a chain
// or with residual blocks (as in EDSR: convolution, units, convolution, added to the block's input), which predict the
// noise. Loss: mean squared error; accuracy: peak signal to noise ratio [dB].
//
// Images go through one by one, a channel as one row of pixels with a frame of zeros around the image. So a tap of a
// kernel is the same row from another place on, and nothing is copied; what the frame gets is cleared.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>

#include "learning/phantoms.hpp"
#include "learning/problem.hpp"
#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

using Eigen::Index;
using Planes = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;  // channels x framed pixels

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
    const auto channels = static_cast<Index>(options.get("channels", 4));
    const auto blocks = static_cast<int>(options.get("blocks", 0));
    if (blocks == 0) {
      const auto layers = static_cast<int>(options.get("layers", 3));
      for (int l = 0; l < layers; ++l)
        add_layer(l == 0 ? 1 : channels, l + 1 == layers ? 1 : channels, l + 1 < layers, kNothing);
    } else {
      add_layer(1, channels, false, kNothing);
      for (int block = 0; block < blocks; ++block) {
        const std::size_t input = layers_.size();
        add_layer(channels, channels, true, kNothing);
        add_layer(channels, channels, false, input);
      }
      add_layer(channels, 1, false, kNothing);
    }
    for (Index dy = -1; dy <= 1; ++dy)
      for (Index dx = -1; dx <= 1; ++dx) taps_[static_cast<std::size_t>(3 * (dy + 1) + dx + 1)] = dy * framed() + dx;
    maps_.push_back(Planes::Zero(1, framed() * framed()));
    errors_ = maps_;
    for (const Layer& layer : layers_) {
      maps_.push_back(Planes::Zero(layer.outputs, framed() * framed()));
      errors_.push_back(maps_.back());
    }
    noisy_ = with_noise(clean_, combine(seed, 5));
    noisy_test_ = with_noise(clean_test_, combine(seed, 6));
  }

  std::size_t size() const override { return size_; }
  std::int64_t samples() const override { return samples_; }
  std::string accuracy_name() const override { return "psnr"; }

  Values initial() const override {
    Values out(size_, 0);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      // The last layer, and the last of a block, begin near zero: the network begins as the identity.
      const bool small = l + 1 == layers_.size() || layer.added != kNothing;
      const double scale = (small ? 0.1 : 1) * std::sqrt(2.0 / (9.0 * static_cast<double>(layer.inputs)));
      for (std::size_t i = 0; i < static_cast<std::size_t>(9 * layer.inputs * layer.outputs); ++i)
        out[layer.begin + i] = scale * normal(combine(combine(seed_, 7), layer.begin + i));
    }
    return out;
  }

  void gradient(std::span<const double> at, std::span<const std::int64_t> positions, std::span<double> out) override {
    gradient_of_passes(at, at, positions, out);
  }

  void gradient_of_passes(std::span<const double> at, std::span<const double> back,
                          std::span<const std::int64_t> positions, std::span<double> out) override {
    std::ranges::fill(out, 0);
    // Loss: mean over pixels of (noisy - predicted noise - clean)^2.
    const double scale = -2.0 / static_cast<double>(side_ * side_ * static_cast<Index>(positions.size()));
    for (const std::int64_t position : positions) {
      const std::int64_t n = shuffle_(position);
      forward(at, noisy_, n);
      for (Planes& error : errors_) error.setZero();
      for_each_pixel(clean_, n, [&](Index pixel, double value) {
        errors_.back()(0, pixel) = scale * (maps_.front()(0, pixel) - maps_.back()(0, pixel) - value);
      });
      backward(back, out);
    }
  }

  Evaluation evaluate(std::span<const double> at) override {
    const std::int64_t tested = static_cast<std::int64_t>(clean_test_.size()) / (side_ * side_);
    return {mean_square(at, noisy_, clean_, std::min(samples_, kLossSamples)),
            -10 * std::log10(mean_square(at, noisy_test_, clean_test_, tested))};
  }

 private:
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
  static constexpr std::int64_t kLossSamples = 200;  // of the training set, that its loss is of

  struct Layer {
    Index inputs, outputs;
    std::size_t begin;  ///< of its parameters: weights by input and tap, then biases
    bool rectified;
    std::size_t added;  ///< which map is added to its output; kNothing: none

    /// Of weight (output, input, tap).
    std::size_t weight(Index output, Index input, std::size_t tap) const {
      return begin + static_cast<std::size_t>(output + outputs * (static_cast<Index>(tap) * inputs + input));
    }
    std::size_t bias(Index output) const { return begin + static_cast<std::size_t>(9 * inputs * outputs + output); }
  };
  using Taps = std::array<double, 9>;

  void add_layer(Index inputs, Index outputs, bool rectified, std::size_t added) {
    layers_.push_back({inputs, outputs, size_, rectified, added});
    size_ += static_cast<std::size_t>(outputs * (9 * inputs + 1));
  }

  Index framed() const { return side_ + 2; }
  /// From the first pixel of an image to its last, the frame between its rows included.
  Index first() const { return framed() + 1; }
  Index length() const { return (side_ - 1) * framed() + side_; }

  std::vector<double> with_noise(const std::vector<double>& clean, std::uint64_t key) const {
    std::vector<double> out = clean;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += noise_ * normal(combine(key, i));
    return out;
  }

  /// Calls visit(framed pixel, value) for the n-th image of a set.
  template <class Visit>
  void for_each_pixel(const std::vector<double>& set, std::int64_t n, Visit visit) const {
    const double* value = set.data() + n * side_ * side_;
    for (Index row = 0; row < side_; ++row)
      for (Index column = 0; column < side_; ++column) visit(first() + row * framed() + column, *value++);
  }

  double mean_square(std::span<const double> at, const std::vector<double>& noisy, const std::vector<double>& clean,
                     std::int64_t images) {
    double sum = 0;
    for (std::int64_t n = 0; n < images; ++n) {
      forward(at, noisy, n);
      for_each_pixel(clean, n, [&](Index pixel, double value) {
        const double error = maps_.front()(0, pixel) - maps_.back()(0, pixel) - value;
        sum += error * error;
      });
    }
    return sum / static_cast<double>(images * side_ * side_);
  }

  /// Adds to a row of pixels what the nine taps make of another.
  void add_taps(const Taps& w, const double* from, double* to) const {
    using Row = Eigen::Map<const Eigen::ArrayXd>;
    const auto tap = [&](std::size_t t) { return Row(from + first() + taps_[t], length()); };
    Eigen::Map<Eigen::ArrayXd>(to + first(), length()) += w[0] * tap(0) + w[1] * tap(1) + w[2] * tap(2) +
                                                          w[3] * tap(3) + w[4] * tap(4) + w[5] * tap(5) +
                                                          w[6] * tap(6) + w[7] * tap(7) + w[8] * tap(8);
  }

  void clear_frame(Planes& planes) const {
    for (Index row = 1; row < side_; ++row) planes.middleCols(first() + row * framed() - 2, 2).setZero();
  }

  /// Fills maps_: that of the image, then those of the layers.
  void forward(std::span<const double> at, const std::vector<double>& set, std::int64_t n) {
    for_each_pixel(set, n, [&](Index pixel, double value) { maps_.front()(0, pixel) = value; });
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      Planes& to = maps_[l + 1];
      for (Index o = 0; o < layer.outputs; ++o) {
        to.row(o).segment(first(), length()).setConstant(at[layer.bias(o)]);
        for (Index c = 0; c < layer.inputs; ++c) {
          Taps w;
          for (std::size_t t = 0; t < 9; ++t) w[t] = at[layer.weight(o, c, t)];
          add_taps(w, maps_[l].row(c).data(), to.row(o).data());
        }
      }
      if (layer.rectified) to = to.cwiseMax(0);
      if (layer.added != kNothing) to += maps_[layer.added];
      clear_frame(to);
    }
  }

  /// Adds to the gradient what errors_.back() makes of it.
  void backward(std::span<const double> at, std::span<double> out) {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      Planes& error = errors_[l + 1];
      if (layer.added != kNothing) errors_[layer.added] += error;
      if (layer.rectified) error = (maps_[l + 1].array() > 0).select(error, 0);
      const auto pixels = error.middleCols(first(), length());
      for (std::size_t t = 0; t < 9; ++t) {
        weights_.noalias() = pixels * maps_[l].middleCols(first() + taps_[t], length()).transpose();
        Eigen::Map<Eigen::MatrixXd>(out.data() + layer.weight(0, 0, t), layer.outputs, layer.inputs) += weights_;
      }
      Eigen::Map<Eigen::VectorXd>(out.data() + layer.bias(0), layer.outputs) += pixels.rowwise().sum();
      if (l == 0) break;
      for (Index c = 0; c < layer.inputs; ++c)
        for (Index o = 0; o < layer.outputs; ++o) {
          Taps w;  // what a pixel gave to its neighbour above left comes back from there
          for (std::size_t t = 0; t < 9; ++t) w[t] = at[layer.weight(o, c, 8 - t)];
          add_taps(w, error.row(o).data(), errors_[l].row(c).data());
        }
      clear_frame(errors_[l]);
    }
  }

  Index side_;
  double noise_;
  std::int64_t samples_;
  std::uint64_t seed_;
  Shuffle shuffle_;
  std::vector<double> clean_, clean_test_, noisy_, noisy_test_;
  std::vector<Layer> layers_;
  std::size_t size_ = 0;
  std::array<Index, 9> taps_{};  ///< how far a tap reads from its pixel
  std::vector<Planes> maps_, errors_;
  Eigen::MatrixXd weights_;
};

}  // namespace

std::unique_ptr<Problem> make_phantoms(const ProblemOptions& options, std::uint64_t seed) {
  return std::make_unique<Denoiser>(options, seed);
}

}  // namespace epocast::learning
