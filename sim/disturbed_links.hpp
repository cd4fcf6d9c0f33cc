#pragma once
// Carries disturbances of links out on the engine.

#include <limits>
#include <map>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/disturbance.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// While this lives, the links of a device have the bandwidth that its windows leave them: those with which its routes
/// begin and end, and those of its node behind them, as a network card. Windows of one device multiply.
class DisturbedLinks {
 public:
  /// `hosts` by device. `elapsed`: the date of training [s] that is now.
  DisturbedLinks(SimEngine& engine, const std::vector<Disturbance>& disturbances, const Cluster& cluster,
                 const std::vector<int>& hosts, double elapsed);
  ~DisturbedLinks();
  DisturbedLinks(const DisturbedLinks&) = delete;
  DisturbedLinks& operator=(const DisturbedLinks&) = delete;

  /// What a link carries between two dates of training, or at one [B/s].
  double mean_bandwidth(int link, double from, double until) const;

 private:
  using WindowsByDevice = std::map<DeviceId, std::vector<SlowWindow>>;
  struct State {
    double factor = 1;
    double until = std::numeric_limits<double>::infinity();
  };
  static State state(const WindowsByDevice& by_device, double date);
  /// Sets the bandwidths of `date` (of training); returns the next date at which they change.
  double apply(double date);

  SimEngine& engine_;
  std::map<int, WindowsByDevice> windows_;  ///< by link, and by device whose link it is
};

}  // namespace epocast
