#include "strategies/placement/replay.hpp"

#include <algorithm>
#include <cassert>
#include <queue>
#include <tuple>

namespace epocast {
namespace {

/// A node's end, or the moment at which it becomes ready. Of events of one moment, ends are first, then those that came
/// first.
struct Event {
  Ticks time;
  std::uint32_t order;  ///< the highest bit: becomes ready
  std::uint32_t node;

  friend bool operator<(const Event& a, const Event& b) {  // for a queue whose top is the largest
    return std::tie(b.time, b.order) < std::tie(a.time, a.order);
  }
};
constexpr std::uint32_t kReady = 1U << 31;

/// First in, first out; or by priority, of equal ones the first.
class ReadyQueue {
 public:
  ReadyQueue(QueueOrder order, std::span<const Ticks> priority) : order_(order), priority_(priority) {}
  bool empty() const { return order_ == QueueOrder::fifo ? head_ == fifo_.size() : heap_.empty(); }
  void push(std::uint32_t n) {
    if (order_ == QueueOrder::fifo)
      fifo_.push_back(n);
    else
      heap_.push({priority_[n], ~count_++, n});
  }
  std::uint32_t pop() {
    if (order_ == QueueOrder::priority) {
      const std::uint32_t n = std::get<2>(heap_.top());
      heap_.pop();
      return n;
    }
    const std::uint32_t n = fifo_[head_++];
    if (head_ == fifo_.size()) {
      fifo_.clear();
      head_ = 0;
    }
    return n;
  }

 private:
  QueueOrder order_;
  std::span<const Ticks> priority_;
  std::vector<std::uint32_t> fifo_;
  std::size_t head_ = 0;
  std::uint32_t count_ = 0;
  std::priority_queue<std::tuple<Ticks, std::uint32_t, std::uint32_t>> heap_;
};

class Replay {
 public:
  Replay(const PlacementGraph& graph, const PlacementMachine& machine, const Placement& placement,
         const ReplayOptions& options)
      : graph_(graph),
        machine_(machine),
        placement_(placement),
        options_(options),
        waits_for_(graph.size()),
        arrived_(graph.size(), 0),
        is_idle_(devices(), 1),
        sends_until_(devices(), 0),
        receives_until_(devices(), 0),
        sent_(devices(), {0, 0}),
        queues_(devices(), ReadyQueue(options.order, options.priority)) {
    result_.start.resize(graph.size());
    result_.end.resize(graph.size());
    result_.busy.assign(devices(), 0);
  }

  ReplayResult run() {
    for (std::uint32_t n = 0; n < graph_.size(); ++n) {
      waits_for_[n] = graph_.in_begin[n + 1] - graph_.in_begin[n];
      if (waits_for_[n] == 0) becomes_ready(n, 0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      const std::size_t device = device_of(event.node);
      if (event.order < kReady) {
        if (graph_.time[event.node] > 0) is_idle_[device] = 1;
        ends(event.node, event.time);
      } else {
        queues_[device].push(event.node);
      }
      // What becomes ready at this very moment is to be seen by a queue with priorities.
      const bool may_wait =
          options_.order == QueueOrder::priority && !events_.empty() && events_.top().time == event.time;
      if (may_wait) {
        touched_.push_back(device);
        continue;
      }
      start_next(device, event.time);
      for (const std::size_t d : touched_) start_next(d, event.time);
      touched_.clear();
    }
    return std::move(result_);
  }

 private:
  std::size_t devices() const { return static_cast<std::size_t>(machine_.devices); }
  std::size_t device_of(std::uint32_t n) const { return static_cast<std::size_t>(placement_[n]); }

  void becomes_ready(std::uint32_t n, Ticks when) {
    if (graph_.time[n] == 0) {
      result_.start[n] = when;
      events_.push({when, count_++, n});
    } else {
      events_.push({when, kReady | count_++, n});
    }
  }

  void start_next(std::size_t device, Ticks now) {
    if (!is_idle_[device] || queues_[device].empty()) return;
    const std::uint32_t n = queues_[device].pop();
    is_idle_[device] = 0;
    result_.start[n] = now;
    result_.busy[device] += graph_.time[n];
    events_.push({now + graph_.time[n], count_++, n});
  }

  /// Gives the transfer's end.
  Ticks send(std::uint32_t e, bool is_whole, std::size_t to, Ticks now) {
    const std::size_t from = device_of(graph_.from[e]);
    const double bytes = graph_.bytes[e];
    Ticks begin = now, end = now + machine_.transfer_time(bytes);
    if (options_.links == Links::copy_engines && bytes > 0) {
      begin = std::max({now, sends_until_[from], receives_until_[to]});
      end = begin + machine_.transfer_time(bytes);
      sends_until_[from] = receives_until_[to] = end - machine_.latency;
    }
    if (bytes > 0)
      result_.transfers.push_back({graph_.from[e], e, static_cast<std::int16_t>(to), is_whole, bytes, begin, end});
    return end;
  }

  void ends(std::uint32_t n, Ticks now) {
    result_.end[n] = now;
    result_.makespan = std::max(result_.makespan, now);
    ++stamp_;
    for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph_.to[e];
      const std::size_t to = device_of(v);
      Ticks arrival = now;
      if (placement_[v] != placement_[n]) {
        const bool is_whole = graph_.bytes[e] > 0 && graph_.bytes[e] >= graph_.output[n];
        if (is_whole && sent_[to].stamp == stamp_) {
          arrival = sent_[to].end;
        } else {
          arrival = send(e, is_whole, to, now);
          if (is_whole) sent_[to] = {stamp_, arrival};
        }
      }
      arrived_[v] = std::max(arrived_[v], arrival);
      if (--waits_for_[v] == 0) becomes_ready(v, arrived_[v]);
    }
  }

  struct Sent {
    std::uint32_t stamp;
    Ticks end;
  };

  const PlacementGraph& graph_;
  const PlacementMachine& machine_;
  const Placement& placement_;
  const ReplayOptions& options_;
  std::vector<std::uint32_t> waits_for_;
  std::vector<Ticks> arrived_;
  std::vector<char> is_idle_;
  std::vector<Ticks> sends_until_, receives_until_;
  std::vector<Sent> sent_;  ///< by device: where the output that is being sent has gone
  std::uint32_t stamp_ = 0, count_ = 0;
  std::vector<ReadyQueue> queues_;
  std::vector<std::size_t> touched_;
  std::priority_queue<Event> events_;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay(const PlacementGraph& graph, const PlacementMachine& machine, const Placement& placement,
                    const ReplayOptions& options) {
  assert(placement.size() == graph.size());
  assert(options.order == QueueOrder::fifo || options.priority.size() == graph.size());
  return Replay(graph, machine, placement, options).run();
}

std::vector<Residence> residences(const PlacementGraph& graph, const Placement& placement, const ReplayResult& result) {
  std::vector<Residence> out;
  std::vector<Ticks> sent_until(graph.size(), 0);
  out.reserve(graph.size() + result.transfers.size());
  for (const OutputTransfer& t : result.transfers) {
    sent_until[t.node] = std::max(sent_until[t.node], t.end);
    Residence copy{t.node, t.to, true, t.bytes, t.begin, t.end};
    const std::uint32_t last = t.is_whole ? graph.out_begin[t.node + 1] : t.edge + 1;
    for (std::uint32_t e = t.edge; e < last; ++e)
      if (placement[graph.to[e]] == t.to && graph.bytes[e] > 0) copy.end = std::max(copy.end, result.end[graph.to[e]]);
    out.push_back(copy);
  }
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    if (graph.memory[n] <= 0) continue;
    Residence own{n, placement[n], false, graph.memory[n], 0, result.makespan};
    if (graph.lifetime[n] != Lifetime::residual) {
      own.begin = result.start[n];
      own.end = std::max(result.end[n], sent_until[n]);
      for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e)
        if (placement[graph.to[e]] == placement[n] && graph.bytes[e] > 0)
          own.end = std::max(own.end, result.end[graph.to[e]]);
    }
    out.push_back(own);
  }
  return out;
}

namespace {

/// Calls `at(time, bytes)` after every change of a device's memory.
template <class Visit>
void sweep(std::span<const Residence> all, int device, Visit at) {
  struct Change {
    Ticks time;
    int order;  // freed first; but what is there for no time at all comes before it goes
    double bytes;
  };
  std::vector<Change> changes;
  double bytes = 0;
  for (const Residence& r : all) {
    if (r.device != device) continue;
    changes.push_back({r.begin, 1, r.bytes});
    changes.push_back({r.end, r.begin < r.end ? 0 : 2, -r.bytes});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.time, a.order, a.bytes) < std::tie(b.time, b.order, b.bytes);
  });
  for (const Change& change : changes) {
    bytes += change.bytes;
    at(change.time, bytes);
  }
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(std::span<const Residence> all, int devices) {
  std::vector<MemoryPeak> out(static_cast<std::size_t>(devices));
  for (int d = 0; d < devices; ++d)
    sweep(all, d, [&](Ticks time, double bytes) {
      MemoryPeak& peak = out[static_cast<std::size_t>(d)];
      if (bytes > peak.bytes) peak = {bytes, time};
    });
  return out;
}

std::vector<MemoryPoint> memory_over_time(std::span<const Residence> all, int device) {
  std::vector<MemoryPoint> out;
  sweep(all, device, [&](Ticks time, double bytes) {
    if (out.empty() || out.back().time != time)
      out.push_back({time, bytes});
    else
      out.back().bytes = std::max(out.back().bytes, bytes);
  });
  return out;
}

}  // namespace epocast
