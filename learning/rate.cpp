#include "learning/rate.hpp"

#include <algorithm>
#include <cmath>

namespace epocast::learning {

double RateRule::at(double epoch, std::int64_t batch, int saturations) const {
  const double ratio = reference > 0 ? static_cast<double>(batch) / static_cast<double>(reference) : 1;
  double scale = scaling == RateScaling::linear ? ratio : scaling == RateScaling::root ? std::sqrt(ratio) : 1;
  if (epoch < warmup) scale = 1 + (scale - 1) * epoch / warmup;
  double factor = 1;
  for (const Decay& decay : decays) {
    if (decay.at_saturation ? saturations-- <= 0 : epoch < decay.epoch) continue;
    factor *= decay.factor;
    if (decay.unscale) scale = 1;
  }
  return rate * scale * factor;
}

int RateRule::saturations() const {
  return static_cast<int>(std::ranges::count_if(decays, [](const Decay& decay) { return decay.at_saturation; }));
}

}  // namespace epocast::learning
