#pragma once
// Counts parameter versions.

#include <cstdint>
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

/// Staleness of a write is how many writes came between its rank's last read and itself.
class VersionCounter {
 public:
  VersionCounter(std::size_t stores, std::size_t ranks)
      : version_(stores, 0), read_(stores, std::vector<std::int64_t>(ranks, 0)), by_rank_(stores > 0 ? ranks : 0) {}

  void read(StoreId store, std::uint32_t rank) { read_[at(store)][rank] = version_[at(store)]; }
  /// `counts`: whether this write enters the statistics; those of the first round see an empty pipeline.
  void write(StoreId store, std::uint32_t rank, bool counts);

  const StalenessReport& all() const { return all_; }
  /// Of one rank's writes; empty if there are no stores.
  const std::vector<StalenessReport>& by_rank() const { return by_rank_; }

 private:
  static std::size_t at(StoreId store) { return static_cast<std::size_t>(store); }
  std::vector<std::int64_t> version_;
  std::vector<std::vector<std::int64_t>> read_;
  StalenessReport all_;
  std::vector<StalenessReport> by_rank_;  ///< without histograms
};

}  // namespace epocast
