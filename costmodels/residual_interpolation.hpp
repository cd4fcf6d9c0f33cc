#pragma once
// Gaussian-process interpolation of what a physical model leaves over, among measured points.
//
// Scope and limits: zero-mean process with a Matern-3/2 kernel, one length per coordinate, plus measurement noise.
// Some coordinates may say how much of something is done, as images of a convolution, instead of what: half of the
// variance is then shared by all amounts, so that what a physical model misses of a layer, it misses of more and less
// of it too. Points of different kinds, as an addition and a softmax, say nothing of each other, but share the
// settings. Far from everything measured, by more than amounts, the mean returns to 0, so that the physical model
// alone decides there; uncertainty() says how far that has gone. A few hundred points: cost grows with their cube.
// Reference: Rasmussen, Williams 2006, "Gaussian Processes for Machine Learning", eq. 2.25, 2.26, 5.9; section 4.2.4
// (sums of kernels).

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "costmodels/dense.hpp"

namespace epocast {

using Coordinates = std::vector<double>;

struct InterpolationPoint {
  Coordinates at;
  std::string kind = {};
};

/// Shape of the process. Fitted; see fit_interpolation().
struct InterpolationSettings {
  std::vector<double> lengths;            ///< per coordinate, distance over which residuals are alike
  double amplitude = 0.3;                 ///< standard deviation of residuals (of ln time)
  double noise = 0.03;                    ///< standard deviation of measurement noise (of ln time)
  std::vector<std::size_t> amounts = {};  ///< coordinates that say how much is done
};

/// A point in units of the settings' lengths, amounts last.
struct ScaledPoint {
  std::string kind;
  Coordinates at = {};
  std::size_t rest = 0;  ///< coordinates that are no amounts
};

class ResidualInterpolation {
 public:
  /// The measured points and their residuals; may be empty. REQUIRES equal numbers, and a length for each coordinate.
  ResidualInterpolation(InterpolationSettings settings, std::vector<InterpolationPoint> points,
                        std::vector<double> residuals);

  /// Expected residual at a point. Remembers what it was asked, as the layers of a network repeat: not for threads.
  double mean(const InterpolationPoint& point) const;
  /// Standard deviation there over `amplitude`: near 0 at measured points, 1 far from all.
  double uncertainty(const InterpolationPoint& point) const;

  const InterpolationSettings& settings() const { return settings_; }
  const std::vector<InterpolationPoint>& points() const { return points_; }
  const std::vector<double>& residuals() const { return residuals_; }

 private:
  std::vector<double> covariances(const InterpolationPoint& point) const;

  InterpolationSettings settings_;
  std::vector<InterpolationPoint> points_;
  std::vector<ScaledPoint> scaled_;  ///< the same
  std::vector<double> residuals_;
  Cholesky factor_;
  std::vector<double> weights_;
  mutable std::map<std::pair<Coordinates, std::string>, double> means_;
};

/// Settings of the greatest posterior density given the points, with lengths expected near 3 (an eightfold size), noise
/// near 3 % and amplitude near 30 %; with these `amounts`. Deterministic.
InterpolationSettings fit_interpolation(const std::vector<InterpolationPoint>& points,
                                        const std::vector<double>& residuals, std::vector<std::size_t> amounts = {});

}  // namespace epocast
