#pragma once
// Counts parameter versions.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/task_graph.hpp"

namespace epocast {

/// How stale writes were, in versions.
struct StalenessReport {
  static constexpr std::size_t kMaxCounted = 1 << 16;

  std::vector<std::int64_t> histogram;  ///< writes by staleness; the last one possible counts those beyond, too
  std::int64_t writes = 0, max = 0;
  double sum = 0;

  void add(std::int64_t staleness);
  std::optional<double> mean() const {
    return writes > 0 ? std::optional(sum / static_cast<double>(writes)) : std::nullopt;
  }
};

/// Staleness of a write is how many writes came between the read that it belongs to, its rank's last one of the same
/// iteration or an earlier one, and itself. A rank may read for later iterations meanwhile.
class VersionCounter {
 public:
  explicit VersionCounter(const CyclicTaskGraph& graph);

  /// `rank`: who reads; of a team, its first.
  void read(StoreId store, std::uint32_t rank, std::int64_t iteration);
  void write(StoreId store, std::uint32_t rank, std::int64_t iteration);

  /// Of all writes but those of the first iteration, which see an empty pipeline; of these if there are no others.
  const StalenessReport& all() const { return counted().all; }
  /// Of one rank's writes, without histograms; empty if there are no stores.
  const std::vector<StalenessReport>& by_rank() const { return counted().by_rank; }

 private:
  struct Read {
    std::int64_t iteration = 0;
    std::int64_t version = 0;
  };
  struct Versions {
    std::vector<std::int64_t> current;      ///< by rank if replicated, else one; of a copy, the original's
    std::vector<std::deque<Read>> pending;  ///< by rank that writes: reads from the last written iteration's on
    StoreId original = StoreId::none;
    bool copied = false;                    ///< reads only begin a copy
    std::vector<std::deque<Read>> copying;  ///< by rank: reads that a copy has not ended with yet
  };
  void end_copy(Versions& copy, std::uint32_t rank, std::int64_t iteration);
  static std::int64_t& current(Versions& versions, std::uint32_t rank) {
    return versions.current[versions.current.size() == 1 ? 0 : rank];
  }
  struct Reports {
    StalenessReport all;
    std::vector<StalenessReport> by_rank;

    void add(std::uint32_t rank, std::int64_t staleness);
  };
  const Reports& counted() const { return later_.all.writes > 0 ? later_ : first_; }

  std::vector<Versions> stores_;
  Reports first_, later_;  ///< of the first iteration, and of those after it
};

}  // namespace epocast
