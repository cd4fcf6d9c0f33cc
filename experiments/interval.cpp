#include "experiments/interval.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace epocast {

ForecastInterval interval_of(double seconds, const SoftwareStack& stack,
                             const std::function<std::vector<double>(const std::vector<SoftwareStack>&)>& forecasts,
                             double also) {
  std::vector<SoftwareStack> others;
  for (const SoftwareStack::Ends& ends : stack.ends()) {
    others.push_back(*ends.low);
    others.push_back(*ends.high);
  }
  const std::vector<double> ends = forecasts(others);
  const double rest = std::hypot(stack.unexplained(), also);
  double above = std::pow(seconds * rest, 2), below = std::pow(seconds * rest / (1 + rest), 2);  // a factor, either way
  for (std::size_t i = 0; i < ends.size(); i += 2) {
    const auto [least, most] = std::minmax(ends[i], ends[i + 1]);
    const double less = std::max(0.0, seconds - least), more = std::max(0.0, most - seconds);
    below += less * less;
    above += more * more;
  }
  return {std::max(0.0, seconds - std::sqrt(below)), seconds + std::sqrt(above)};
}

double within_90(const std::vector<double>& errors) {
  if (errors.empty()) return 0;
  double squares = 0;
  for (const double error : errors) squares += error * error;
  const auto n = static_cast<double>(errors.size());
  return boost::math::quantile(boost::math::students_t(n), 0.95) * std::sqrt(squares / n);
}

ForecastInterval interval_among_steps(double seconds, double within) {
  return {seconds * std::exp(-within), seconds * std::exp(within)};
}

}  // namespace epocast
