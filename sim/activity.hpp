#pragma once
// How each device spends its time: computing, communicating, both, or neither.

#include <cstdint>
#include <vector>

#include "sim/cluster.hpp"

namespace epocast {

/// Seconds of one device by what it does. The four add up to the time observed.
struct ActivityTimes {
  double idle = 0;
  double compute_only = 0;
  double communication_only = 0;  ///< exposed communication
  double both = 0;                ///< hidden communication

  double compute() const { return compute_only + both; }
  double communication() const { return communication_only + both; }
  double total() const { return idle + compute_only + communication_only + both; }
};

ActivityTimes operator-(const ActivityTimes& a, const ActivityTimes& b);
ActivityTimes operator+(const ActivityTimes& a, const ActivityTimes& b);
ActivityTimes operator*(double times, const ActivityTimes& a);

/// Follows the devices through simulated time. Communication counts while any of a device's communication tasks runs.
class ActivityAccounts {
 public:
  ActivityAccounts(std::size_t devices, double start) : accounts_(devices) {
    for (Account& account : accounts_) account.since = start;
  }

  void compute_begins(DeviceId device, double now) { change(device, now, +1, 0); }
  void compute_ends(DeviceId device, double now) { change(device, now, -1, 0); }
  void communication_begins(DeviceId device, double now) { change(device, now, 0, +1); }
  void communication_ends(DeviceId device, double now) { change(device, now, 0, -1); }

  /// Times of a device up to now.
  ActivityTimes times(DeviceId device, double now) const;

 private:
  struct Account {
    ActivityTimes times;
    double since = 0;
    std::int32_t computing = 0;
    std::int32_t communicating = 0;

    void advance(double now);
  };

  void change(DeviceId device, double now, int compute, int communication) {
    Account& account = accounts_[static_cast<std::size_t>(device)];
    account.advance(now);
    account.computing += compute;
    account.communicating += communication;
  }

  std::vector<Account> accounts_;
};

}  // namespace epocast
