#pragma once
// Carries disturbances of links out on the engine.

#include <map>
#include <vector>

#include "sim/disturbance.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// While this lives, the links with which a host's routes begin and end have the bandwidth that its windows leave them.
/// Windows of one link multiply.
class DisturbedLinks {
 public:
  /// `hosts` by device. `elapsed`: the date of training [s] that is now.
  DisturbedLinks(SimEngine& engine, const std::vector<Disturbance>& disturbances, const std::vector<int>& hosts,
                 double elapsed);
  ~DisturbedLinks();
  DisturbedLinks(const DisturbedLinks&) = delete;
  DisturbedLinks& operator=(const DisturbedLinks&) = delete;

 private:
  /// Sets the bandwidths of `date` (of training); returns the next date at which they change.
  double apply(double date);

  SimEngine& engine_;
  std::map<int, std::map<DeviceId, std::vector<SlowWindow>>> windows_;  ///< by link, and by device whose link it is
};

}  // namespace epocast
