#include "experiments/reproduce/winners.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace epocast {
namespace {

double gap(double better, double other, bool less_is_better) {
  return 100 * ((less_is_better ? other / better : better / other) - 1);
}

}  // namespace

std::vector<WinnerPair> winner_pairs(const std::vector<TargetRow>& rows, double least_gap, bool less_is_better) {
  std::vector<WinnerPair> out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const TargetRow *better = &rows[i], *other = &rows[j];
      if (better->rivals.empty() || better->rivals != other->rivals) continue;
      if (better->role != Role::predicted || other->role != Role::predicted) continue;
      if ((*better->published < *other->published) != less_is_better) std::swap(better, other);
      const double published = gap(*better->published, *other->published, less_is_better);
      if (published > least_gap)
        out.push_back({better->row, other->row, published, gap(better->simulated, other->simulated, less_is_better)});
    }
  std::ranges::stable_sort(out, {}, [](const WinnerPair& p) { return std::tuple(p.is_right(), -p.published_gap); });
  return out;
}

}  // namespace epocast
