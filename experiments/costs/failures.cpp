#include "experiments/costs/failures.hpp"

#include <algorithm>
#include <cmath>

namespace epocast {

double optimal_interval(double mtbf, double write) {
  if (write >= 2 * mtbf) return mtbf;
  const double ratio = write / (2 * mtbf);
  return std::sqrt(2 * write * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write;
}

double expected_time(const FailureModel& model, double useful, std::optional<double> all) {
  if (!(useful > 0)) return 0;
  const double interval =
      std::min(model.checkpoint ? *model.checkpoint : optimal_interval(model.mtbf, model.write), all.value_or(useful));
  // What costs nothing is done all the time: the limit of the formula for intervals that become ever shorter.
  const double per_second =
      interval > 0 ? std::expm1((interval + model.write) / model.mtbf) / interval : 1 / model.mtbf;
  return model.mtbf * std::exp(model.restart / model.mtbf) * per_second * useful;
}

}  // namespace epocast
