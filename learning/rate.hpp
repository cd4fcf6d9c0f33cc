#pragma once
// Learning rates by rule.

#include <cstdint>
#include <vector>

namespace epocast::learning {

/// How the rate follows the batch size.
enum class RateScaling {
  none,
  linear,  ///< in proportion to it (Goyal et al. 2017)
  root,    ///< to its root (Hoffer et al. 2017; Lee 2020, eq. 5.3)
};

struct RateRule {
  double rate = 0.1;           ///< of the reference batch
  std::int64_t reference = 0;  ///< batch; 0: that of the first phase
  RateScaling scaling = RateScaling::none;
  double warmup = 0;  ///< epochs in which the rate grows from `rate` to what scaling makes of it
  struct Decay {
    double epoch = 0;
    double factor = 1;
    /// Back to the rate of the reference batch first, as if scaling had not been (Lee 2020, 5.1.5).
    bool unscale = false;
    bool at_saturation = false;  ///< instead of at an epoch: the first such when accuracy saturates, and so on
  };
  std::vector<Decay> decays = {};  ///< factors multiply

  /// The rate in an epoch (0 is the beginning; a fraction is inside one) with a global batch, after so many
  /// saturations.
  double at(double epoch, std::int64_t batch, int saturations = 0) const;
  /// Decays that wait for one.
  int saturations() const;
};

}  // namespace epocast::learning
