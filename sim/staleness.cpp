#include "sim/staleness.hpp"

#include <algorithm>

namespace epocast {

void StalenessReport::add(std::int64_t staleness) {
  ++writes;
  sum += static_cast<double>(staleness);
  max = std::max(max, staleness);
}

VersionCounter::VersionCounter(const CyclicTaskGraph& graph) : stores_(graph.stores().size()) {
  for (std::size_t t = 0; t < graph.tasks().size(); ++t) {
    const VersionEffect& effect = graph.tasks()[t].version;
    if (effect.store == StoreId::none || effect.kind != VersionEffect::write_at_end) continue;
    Versions& versions = stores_[CyclicTaskGraph::index(effect.store)];
    const auto teams = static_cast<std::uint32_t>(graph.width_of(TaskId(t)));
    const std::size_t ranks = graph.tasks()[t].axis.first_rank(teams - 1) + 1;
    versions.pending.resize(std::max(versions.pending.size(), ranks));
    for (Reports* reports : {&first_, &later_}) reports->by_rank.resize(std::max(reports->by_rank.size(), ranks));
  }
  for (std::size_t s = 0; s < stores_.size(); ++s) {
    stores_[s].current.assign(graph.stores()[s].replicated ? std::max<std::size_t>(stores_[s].pending.size(), 1) : 1,
                              0);
    stores_[s].original = graph.stores()[s].original;
    if (stores_[s].original == StoreId::none) continue;
    Versions& original = stores_[CyclicTaskGraph::index(stores_[s].original)];
    original.copied = true;
    original.copying.resize(original.pending.size());
  }
}

void VersionCounter::read(StoreId store, std::uint32_t rank, std::int64_t iteration) {
  Versions& versions = stores_[CyclicTaskGraph::index(store)];
  if (rank >= versions.pending.size()) return;  // a rank that never writes
  const bool is_copy = versions.original != StoreId::none;
  Versions& read = is_copy ? stores_[CyclicTaskGraph::index(versions.original)] : versions;
  (versions.copied ? read.copying : read.pending)[rank].push_back({iteration, current(versions, rank)});
}

void VersionCounter::end_copy(Versions& copy, std::uint32_t rank, std::int64_t iteration) {
  std::deque<Read>& reads = stores_[CyclicTaskGraph::index(copy.original)].copying[rank];
  while (!reads.empty() && reads.front().iteration <= iteration) {
    current(copy, rank) = reads.front().version;
    reads.pop_front();
  }
}

void VersionCounter::write(StoreId store, std::uint32_t rank, std::int64_t iteration) {
  Versions& versions = stores_[CyclicTaskGraph::index(store)];
  if (versions.original != StoreId::none) return end_copy(versions, rank, iteration);
  std::deque<Read>& reads = versions.pending[rank];
  while (reads.size() > 1 && reads[1].iteration <= iteration) reads.pop_front();
  const std::int64_t read = reads.empty() || reads.front().iteration > iteration ? 0 : reads.front().version;
  (iteration == 0 ? first_ : later_).add(rank, current(versions, rank)++ - read);
}

void VersionCounter::Reports::add(std::uint32_t rank, std::int64_t staleness) {
  all.add(staleness);
  by_rank[rank].add(staleness);
  const std::size_t bin = std::min(static_cast<std::size_t>(staleness), StalenessReport::kMaxCounted);
  if (bin >= all.histogram.size()) all.histogram.resize(bin + 1, 0);
  ++all.histogram[bin];
}

}  // namespace epocast
