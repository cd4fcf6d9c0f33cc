#include "strategies/placement/memory_ledger.hpp"

#include <algorithm>

namespace epocast {
namespace {

constexpr std::size_t kMostMoments = 1 << 15;

}  // namespace

MemoryLedger::MemoryLedger(const PlacementGraph& graph, int devices, const ReplayResult& times, Placement& placement)
    : graph_(graph), placement_(placement) {
  number_moments(times);
  memory_.assign(static_cast<std::size_t>(devices), MaxTree(moments_));
  for (std::uint32_t n = 0; n < graph.size(); ++n) occupy(n, 1);
}

/// What changes place in memory: the outputs of what moves, and of what it reads.
void MemoryLedger::move(std::span<const std::uint32_t> nodes, std::int16_t to) {
  affected_.assign(nodes.begin(), nodes.end());
  for (const std::uint32_t n : nodes)
    for (const std::uint32_t e : graph_.in_edges(n))
      if (graph_.bytes[e] > 0) affected_.push_back(graph_.from[e]);
  std::sort(affected_.begin(), affected_.end());
  affected_.erase(std::unique(affected_.begin(), affected_.end()), affected_.end());
  for (const std::uint32_t n : affected_) occupy(n, -1);
  for (const std::uint32_t n : nodes) placement_[n] = to;
  for (const std::uint32_t n : affected_) occupy(n, 1);
}

void MemoryLedger::number_moments(const ReplayResult& times) {
  std::vector<Ticks> all(times.end);
  for (std::size_t n = 0; n < graph_.size(); ++n)
    if (graph_.time[n] > 0) all.push_back(times.start[n]);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::size_t step = all.size() / kMostMoments + 1;
  std::vector<Ticks> borders;
  for (std::size_t i = 0; i < all.size(); i += step) borders.push_back(all[i]);
  moments_ = borders.size();
  // Moment i lasts from border i up to border i + 1.
  const auto moment = [&](Ticks t) {
    const auto at = std::upper_bound(borders.begin(), borders.end(), t) - borders.begin();
    return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(at, 1) - 1);
  };
  start_.resize(graph_.size());
  end_.resize(graph_.size());
  latest_send_.resize(graph_.size());
  for (std::size_t n = 0; n < graph_.size(); ++n) {
    start_[n] = moment(times.start[n]);
    // The last moment in which it runs; nothing runs at its end.
    end_[n] = std::max(start_[n], moment(std::max<Ticks>(0, times.end[n] - 1)));
    latest_send_[n] = end_[n];
  }
  for (const OutputTransfer& t : times.transfers)
    latest_send_[t.node] = std::max(latest_send_[t.node], moment(std::max<Ticks>(0, t.end - 1)));
}

/// Adds what node n's output occupies, everywhere, `sign` times.
void MemoryLedger::occupy(std::uint32_t n, int sign) {
  const double own = graph_.memory[n];
  const std::int16_t home = placement_[n];
  std::uint32_t until = end_[n];
  away_.clear();
  bool goes_away = false;
  for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
    const double bytes = graph_.bytes[e];
    if (bytes <= 0) continue;
    const std::uint32_t v = graph_.to[e];
    if (placement_[v] == home) {
      until = std::max(until, end_[v]);
      continue;
    }
    goes_away = true;
    const bool is_whole = bytes >= graph_.output[n];
    auto found = std::find_if(away_.begin(), away_.end(), [&](const Away& a) { return a.device == placement_[v]; });
    if (found == away_.end() || !is_whole) {
      away_.push_back({placement_[v], bytes, end_[v]});
    } else {
      found->last = std::max(found->last, end_[v]);
    }
  }
  for (const Away& a : away_)
    memory_[static_cast<std::size_t>(a.device)].add(std::min(end_[n], a.last), a.last, sign * a.bytes);
  if (own <= 0) return;
  if (graph_.lifetime[n] == Lifetime::residual) {
    memory_[static_cast<std::size_t>(home)].add(0, moments_ - 1, sign * own);
  } else {
    if (goes_away) until = std::max(until, latest_send_[n]);
    memory_[static_cast<std::size_t>(home)].add(start_[n], until, sign * own);
  }
}

}  // namespace epocast
