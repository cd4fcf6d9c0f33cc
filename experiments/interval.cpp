#include "experiments/interval.hpp"

#include <algorithm>
#include <cmath>

namespace epocast {

ForecastInterval interval_of(double seconds, const SoftwareStack& stack,
                             const std::function<double(const SoftwareStack&)>& forecast) {
  const double rest = seconds * stack.unexplained();
  double below = rest * rest, above = rest * rest;
  for (const SoftwareStack::Ends& ends : stack.ends()) {
    const double one = forecast(*ends.low), other = forecast(*ends.high);
    const double less = std::max(0.0, seconds - std::min(one, other));
    const double more = std::max(0.0, std::max(one, other) - seconds);
    below += less * less;
    above += more * more;
  }
  return {seconds - std::sqrt(below), seconds + std::sqrt(above)};
}

}  // namespace epocast
