#pragma once
// What SimGrid is told of flows. Only for the engine: see engine.hpp.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "sim/simgrid/platform.hpp"

namespace epocast {

/// All flows from one host to another are one of SimGrid's (PairFlows), until the first of them ends. Where a link
/// gives each flow a rate of its own, each is one of SimGrid's.
class Channels {
 public:
  /// Of a platform, which outlives this, with SimGrid.
  explicit Channels(SimPlatform& platform);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  /// Begins with the next call of tell_simgrid().
  void start(int src, int dst, double bytes, std::uint64_t token);

  /// At the end of all that happens at a date [s]. `degraded`: links that carry less than they should, and how much
  /// [B/s].
  void tell_simgrid(double date, const std::map<int, double>& degraded);

  /// SimGrid has ended what it was told of a channel, by the channel's number. Calls ended(token) for each flow.
  void finish(std::size_t number, double date, const std::function<void(std::uint64_t)>& ended);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epocast
