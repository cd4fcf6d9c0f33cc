#include "strategies/placement/paging.hpp"

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>

namespace epocast {
namespace {

class Paging {
 public:
  Paging(const PlacementGraph& graph, double memory, const PagingLink& link)
      : graph_(graph),
        memory_(memory),
        link_(link),
        readers_(graph.size(), 0),
        left_(graph.size(), 0),
        place_(graph.size()),
        is_here_(graph.size(), 0),
        host_has_(graph.size(), 0),
        user_(graph.size(), 0) {
    for (std::size_t e = 0; e < graph.edges(); ++e)
      if (graph.bytes[e] > 0) ++readers_[graph.from[e]];
    for (std::uint32_t n = 0; n < graph.size(); ++n) host_has_[n] = is_variable(n) ? 1 : 0;
  }

  PagedStep run() {
    const Placement one(graph_.size(), 0);
    const ReplayResult result = replay(graph_, PlacementMachine{}, one);
    std::vector<std::uint32_t> order(graph_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return result.start[a] < result.start[b]; });
    step(order);
    return step(order);
  }

 private:
  bool is_variable(std::uint32_t n) const { return graph_.lifetime[n] == Lifetime::residual; }

  PagedStep step(const std::vector<std::uint32_t>& order) {
    step_ = {};
    left_ = readers_;
    for (const std::uint32_t n : order) {
      ++now_;
      double needs = graph_.memory[n];
      needed_.clear();
      for (const std::uint32_t e : graph_.in_edges(n))
        if (graph_.bytes[e] > 0 && graph_.memory[graph_.from[e]] > 0 && user_[graph_.from[e]] != now_) {
          user_[graph_.from[e]] = now_;
          needed_.push_back(graph_.from[e]);
          needs += graph_.memory[graph_.from[e]];
        }
      if (needs > memory_) move(needs - memory_);
      for (const std::uint32_t u : needed_) use(u, true);
      if (graph_.memory[n] > 0 && !is_variable(n)) {
        user_[n] = now_;
        use(n, false);
        host_has_[n] = 0;
        if (readers_[n] == 0) drop(n);
      }
      if (graph_.lifetime[n] == Lifetime::reference)
        for (const std::uint32_t u : needed_) host_has_[u] = 0;  // it writes there
      step_.makespan += graph_.time[n];
      for (const std::uint32_t e : graph_.in_edges(n)) {
        const std::uint32_t u = graph_.from[e];
        if (graph_.bytes[e] > 0 && --left_[u] == 0 && !is_variable(u)) drop(u);
      }
    }
    return step_;
  }

  void move(double bytes) {
    step_.fetched += bytes;
    step_.makespan += to_ticks(bytes / link_.bytes_per_second) +
                      link_.fault * static_cast<Ticks>(std::ceil(bytes / link_.page_bytes));
  }

  void use(std::uint32_t n, bool is_read) {
    if (is_here_[n]) {
      recent_.splice(recent_.end(), recent_, place_[n]);
      return;
    }
    const double bytes = graph_.memory[n];
    for (auto at = recent_.begin(); held_ + bytes > memory_ && at != recent_.end();) {
      const std::uint32_t victim = *at++;
      if (user_[victim] != now_) evict(victim);
    }
    if (is_read) move(bytes);
    place_[n] = recent_.insert(recent_.end(), n);
    is_here_[n] = 1;
    held_ += bytes;
  }

  void evict(std::uint32_t n) {
    if (!host_has_[n]) {
      step_.evicted += graph_.memory[n];
      step_.makespan += to_ticks(graph_.memory[n] / link_.bytes_per_second);
      host_has_[n] = 1;
    }
    drop(n);
  }

  void drop(std::uint32_t n) {
    if (!is_here_[n]) return;
    recent_.erase(place_[n]);
    is_here_[n] = 0;
    held_ -= graph_.memory[n];
  }

  const PlacementGraph& graph_;
  double memory_;
  PagingLink link_;
  std::vector<std::uint32_t> readers_, left_;  ///< by node: data edges out of it, and those that are to come
  std::list<std::uint32_t> recent_;            ///< what is on the device, the longest unused first
  std::vector<std::list<std::uint32_t>::iterator> place_;
  std::vector<char> is_here_, host_has_;
  std::vector<std::uint32_t> user_;  ///< the last node that used it, by its turn
  std::vector<std::uint32_t> needed_;
  std::uint32_t now_ = 0;
  double held_ = 0;
  PagedStep step_;
};

}  // namespace

PagedStep page_step(const PlacementGraph& graph, double memory, const PagingLink& link) {
  return Paging(graph, memory, link).run();
}

}  // namespace epocast
