#include "sim/staleness.hpp"

#include <algorithm>

namespace epocast {

void StalenessReport::add(std::int64_t staleness) {
  ++writes;
  sum += static_cast<double>(staleness);
  max = std::max(max, staleness);
}

void VersionCounter::write(StoreId store, std::uint32_t rank, bool counts) {
  const std::int64_t staleness = version_[at(store)]++ - read_[at(store)][rank];
  if (!counts) return;
  all_.add(staleness);
  by_rank_[rank].add(staleness);
  const std::size_t bin = std::min(static_cast<std::size_t>(staleness), StalenessReport::kMaxCounted);
  if (bin >= all_.histogram.size()) all_.histogram.resize(bin + 1, 0);
  ++all_.histogram[bin];
}

}  // namespace epocast
