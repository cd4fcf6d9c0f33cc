#pragma once
// Carries results from a child process to its parent, bit by bit: comparisons between runs may be exact.

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/execution.hpp"

namespace epocast {

/// Writes values to a string, or reads them from it in the same order.
class Archive {
 public:
  Archive() = default;                                                               ///< writes
  explicit Archive(std::string bytes) : bytes_(std::move(bytes)), reading_(true) {}  ///< reads

  template <class... Values>
  void operator()(Values&... values) {
    (carry(values), ...);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void carry(T& value) { raw(&value, sizeof value); }
  void carry(std::string& text) { sequence(text); }
  template <class T>
  void carry(std::vector<T>& values) {
    sequence(values);
  }
  template <class T>
  void carry(std::optional<T>& value) {
    bool present = value.has_value();
    carry(present);
    if (present && !value) value.emplace();
    if (present) carry(*value);
  }
  void carry(StepMetrics& m) {
    (*this)(m.compute, m.communication, m.exposed_communication, m.bytes, m.max_link_utilization, m.busiest_link,
            m.mean_staleness, m.max_staleness);
  }
  void carry(SimulatedTotals& t) { (*this)(t.makespan, t.activity, t.sent, t.received, t.on_link); }
  void carry(WorkerReport& w) {
    (*this)(w.device, w.steps, w.skipped, w.dropped, w.ended, w.stopped, w.mean_staleness, w.max_staleness, w.lost,
            w.cost_to_others, w.came_last);
  }
  void carry(ServerReport& s) { (*this)(s.queue, s.utilization, s.served); }
  void carry(StalenessReport& s) { (*this)(s.histogram, s.writes, s.max, s.sum); }
  void carry(CycleBound& b) { (*this)(b.seconds, b.tasks, b.lags, b.durations); }
  void carry(Timeline& t) { (*this)(t.intervals, t.truncated); }
  void carry(ExecutionResult& r) {
    (*this)(r.total, r.iteration, r.iteration_ci95, r.iterations_simulated, r.exact, r.period, r.folded, r.metrics,
            r.totals, r.workers, r.servers, r.staleness, r.bound, r.algorithms, r.remarks, r.doubts, r.timeline, r.ends,
            r.repeats_after, r.tells_whole, r.own_work);
  }

  template <class Sequence>
  void sequence(Sequence& values) {
    std::size_t size = values.size();
    carry(size);
    values.resize(size);
    for (auto& value : values) carry(value);
  }
  void raw(void* value, std::size_t size) {
    if (!reading_) {
      bytes_.append(static_cast<const char*>(value), size);
      return;
    }
    if (at_ + size > bytes_.size()) throw std::runtime_error("a child's result is cut short");
    std::memcpy(value, bytes_.data() + at_, size);
    at_ += size;
  }

  std::string bytes_;
  std::size_t at_ = 0;
  bool reading_ = false;
};

}  // namespace epocast
