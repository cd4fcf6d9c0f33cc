#include "sim/activity.hpp"

namespace epocast {

ActivityTimes operator-(const ActivityTimes& a, const ActivityTimes& b) {
  return {a.idle - b.idle, a.compute_only - b.compute_only, a.communication_only - b.communication_only,
          a.both - b.both};
}

ActivityTimes operator+(const ActivityTimes& a, const ActivityTimes& b) {
  return {a.idle + b.idle, a.compute_only + b.compute_only, a.communication_only + b.communication_only,
          a.both + b.both};
}

ActivityTimes operator*(double times, const ActivityTimes& a) {
  return {times * a.idle, times * a.compute_only, times * a.communication_only, times * a.both};
}

void ActivityAccounts::Account::advance(double now) {
  double& state = computing > 0 ? (communicating > 0 ? times.both : times.compute_only)
                                : (communicating > 0 ? times.communication_only : times.idle);
  state += now - since;
  since = now;
}

ActivityTimes ActivityAccounts::times(DeviceId device, double now) const {
  Account account = accounts_[static_cast<std::size_t>(device)];
  account.advance(now);
  return account.times;
}

}  // namespace epocast
