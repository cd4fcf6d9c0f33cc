#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

namespace epocast {

/// Tokens ordered by date, and by insertion within a date.
///
/// Workers in lock-step set thousands of timers for the same date, so the heap holds buckets of equal dates. A small
/// direct-mapped cache finds the newest bucket of a date; on a miss a date gets a second bucket behind the first, which
/// keeps the order. Tokens are chained through one pool, so that nothing is allocated once the queue has been this
/// long.
class TimerQueue {
 public:
  bool empty() const { return heap_.empty(); }

  /// REQUIRES: not empty().
  double next_date() const { return heap_.front().date; }

  void push(double date, std::uint64_t token) {
    const std::uint32_t node = new_node(token);
    CacheLine& line = cache_[cache_slot(date)];
    if (line.bucket != kNone && line.date == date) {
      std::uint32_t& tail = tails_[line.bucket];
      nodes_[tail].next = node;
      tail = node;
      return;
    }
    line = {date, new_bucket(node)};
    heap_.push_back({date, next_sequence_++, line.bucket, node});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Whether the first bucket is the only one until `date`, and order(token) does not decrease along it. REQUIRES: not
  /// empty().
  template <typename Order>
  bool only_one_in_order(double date, Order&& order) const {
    for (std::size_t next = 1; next < std::min<std::size_t>(heap_.size(), 3); ++next)
      if (heap_[next].date <= date) return false;
    if (nodes_[heap_.front().head].next == kNone) return true;
    std::uint64_t last = 0;
    for (std::uint32_t node = heap_.front().head; node != kNone; node = nodes_[node].next) {
      const std::uint64_t place = order(nodes_[node].token);
      if (place < last) return false;
      last = place;
    }
    return true;
  }

  /// Removes the first bucket and calls fire(token) for its tokens. Tokens that fire() pushes go to other buckets.
  /// REQUIRES: not empty().
  template <typename Fire>
  void pop_bucket(Fire&& fire) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Bucket bucket = heap_.back();
    heap_.pop_back();
    CacheLine& line = cache_[cache_slot(bucket.date)];
    if (line.bucket == bucket.id) line.bucket = kNone;
    free_buckets_.push_back(bucket.id);
    for (std::uint32_t node = bucket.head; node != kNone;) {
      const Node current = nodes_[node];
      free_nodes_.push_back(node);
      fire(current.token);
      node = current.next;
    }
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr int kCacheBits = 8;

  struct Node {
    std::uint64_t token;
    std::uint32_t next;
  };
  struct Bucket {
    double date;
    std::uint64_t sequence;
    std::uint32_t id;
    std::uint32_t head;
    bool operator<(const Bucket& other) const {  // std::*_heap put the greatest on top
      return date != other.date ? date > other.date : sequence > other.sequence;
    }
  };
  struct CacheLine {
    double date = 0;
    std::uint32_t bucket = kNone;
  };

  static std::size_t cache_slot(double date) {
    return (std::bit_cast<std::uint64_t>(date) * 0x9E3779B97F4A7C15u) >> (64 - kCacheBits);
  }

  std::uint32_t new_node(std::uint64_t token) {
    if (free_nodes_.empty()) {
      assert(nodes_.size() < kNone);
      nodes_.push_back({token, kNone});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_nodes_.back();
    free_nodes_.pop_back();
    nodes_[node] = {token, kNone};
    return node;
  }

  std::uint32_t new_bucket(std::uint32_t tail) {
    if (free_buckets_.empty()) {
      tails_.push_back(tail);
      return static_cast<std::uint32_t>(tails_.size() - 1);
    }
    const std::uint32_t bucket = free_buckets_.back();
    free_buckets_.pop_back();
    tails_[bucket] = tail;
    return bucket;
  }

  std::vector<Bucket> heap_;
  std::vector<std::uint32_t> tails_;  // last node of each bucket
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_buckets_;
  std::vector<std::uint32_t> free_nodes_;
  std::array<CacheLine, std::size_t{1} << kCacheBits> cache_{};
  std::uint64_t next_sequence_ = 0;
};

}  // namespace epocast
