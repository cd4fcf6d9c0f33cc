#pragma once
// What training costs beside time: money, energy, and what failures and pauses take. Read from a scenario's blocks
// `price`, `power`, `failures` and `pauses`; docs/what-if.md.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/costs/failures.hpp"
#include "experiments/costs/pauses.hpp"
#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

/// Rent of machines.
struct Price {
  double per_hour = 0;   ///< in `currency`
  std::string currency;  ///< as the study writes it: "$", "EUR"
  bool of_node = false;  ///< of a whole node, however many of its devices train; otherwise of a device
};

/// Electric power of something that computes now and then [W].
struct PowerDraw {
  double idle = 0;
  double busy = 0;
};

/// Electric power of what trains.
struct PowerSetting {
  PowerDraw device;                 ///< of each device
  PowerDraw node;                   ///< of the rest of each node: processors, fans, network cards
  double overhead = 1;              ///< all that the site draws over what its machines do (PUE)
  std::optional<double> intensity;  ///< CO2 emitted for it [kg/J]
};

/// How often nodes fail and what then happens.
struct FailureSetting {
  double node_mtbf = 0;              ///< mean time between failures of one node [s]
  std::optional<double> checkpoint;  ///< training between two checkpoints [s]; none: the best
  double write = 0;                  ///< time to write a checkpoint [s], unless there is a rate
  std::optional<double> write_rate;  ///< of the storage [B/s]
  double restart = 0;                ///< [s]
};

struct RunningCosts {
  std::optional<Price> price;
  std::optional<PowerSetting> power;
  std::optional<FailureSetting> failures;
  std::optional<Pauses> pauses;
};

/// The blocks of a study; what it lacks is taken from `platform`, where a map may have them too. Throws ConfigError.
RunningCosts read_running_costs(const ConfigNode& study, const ConfigNode& platform);
/// The platform without these blocks, which its reader does not know.
ConfigNode without_running_costs(const ConfigNode& platform);

/// Machines that a part of training takes.
struct Machines {
  double devices = 0;
  double nodes = 0;
};
/// REQUIRES: no device is there twice.
Machines machines_of(const Cluster& cluster, const std::vector<DeviceId>& devices);

/// Expected s that `useful` of `all` s of training take on so many nodes, `checkpoint_bytes` B being saved each time.
double expected_time(const FailureSetting& setting, double useful, double all, double nodes, double checkpoint_bytes);
/// Money for `seconds` of these machines; every second counts.
double rent(const Price& price, const Machines& machines, double seconds);
/// Energy [J] that the site needs for `seconds` in which the devices compute for the share `busy` of the time:
/// overhead * seconds * (devices * (idle + busy * (busy power - idle)) + the same of nodes).
double energy(const PowerSetting& power, const Machines& machines, double seconds, double busy);

}  // namespace epocast
