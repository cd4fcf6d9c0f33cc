#include "experiments/reproduce/target.hpp"

#include <cmath>

namespace epocast {

const char* to_string(Role role) {
  switch (role) {
    case Role::exact:
      return "exact";
    case Role::input:
      return "input";
    case Role::predicted:
      break;
  }
  return "predicted";
}

std::optional<double> TargetRow::error_pct() const {
  if (!published) return std::nullopt;
  if (*published == 0) return simulated == 0 ? 0 : std::numeric_limits<double>::infinity();
  return 100 * (simulated - *published) / std::abs(*published);
}

std::vector<Target> builtin_targets() { return {}; }

}  // namespace epocast
