#include "sim/simgrid/channels.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/simgrid/pair_flows.hpp"

namespace epocast {

struct Channels::Impl {
  struct Channel {
    int src = 0, dst = 0;
    bool of_pair = false;  // of all flows between the two
    PairFlows flows;
    bool told = false;  // SimGrid has a flow of this channel's number
    double since = 0;   // date of the last grant
    bool changed = false;
  };

  explicit Impl(SimPlatform& of) : platform(of), simgrid(of.simgrid()) {}
  std::size_t channel_for(int src, int dst);
  void release(std::size_t number);
  void change(std::size_t number);
  void begin(std::size_t number, const std::map<int, double>& degraded);
  void adapt(std::size_t number);

  SimPlatform& platform;
  SimGrid& simgrid;
  std::deque<Channel> channels;
  std::unordered_map<std::uint64_t, std::size_t> of_pairs;  // those that have flows; key: SimPlatform::pair_key()
  std::vector<std::size_t> free;
  std::vector<std::size_t> changed;  // of which SimGrid has to be told
};

Channels::Channels(SimPlatform& platform) : impl_(std::make_unique<Impl>(platform)) {}

Channels::~Channels() { impl_->simgrid.cancel_flows(); }

void Channels::start(int src, int dst, double bytes, std::uint64_t token) {
  const std::size_t number = impl_->channel_for(src, dst);
  impl_->channels[number].flows.start(std::nearbyint(bytes * kQuantaPerByte), token);
  impl_->change(number);
}

/// The pair's, while it has flows; or one of its own, where a flow's rate does not depend on its neighbours'.
std::size_t Channels::Impl::channel_for(int src, int dst) {
  const std::uint64_t key = platform.pair_key(src, dst);
  if (const auto busy = of_pairs.find(key); busy != of_pairs.end()) return busy->second;
  if (free.empty()) {
    free.push_back(channels.size());
    channels.emplace_back();
  }
  const std::size_t number = free.back();
  free.pop_back();
  Channel& channel = channels[number];
  channel.src = src;
  channel.dst = dst;
  channel.of_pair = std::ranges::all_of(
      platform.route(src, dst).links, [this](int link) { return platform.link(link).sharing == LinkSharing::kShared; });
  if (channel.of_pair) of_pairs.emplace(key, number);
  return number;
}

void Channels::Impl::release(std::size_t number) {
  const Channel& channel = channels[number];
  if (channel.of_pair) of_pairs.erase(platform.pair_key(channel.src, channel.dst));
  free.push_back(number);
}

void Channels::Impl::change(std::size_t number) {
  if (!std::exchange(channels[number].changed, true)) changed.push_back(number);
}

void Channels::tell_simgrid(double date, const std::map<int, double>& degraded) {
  for (const std::size_t number : impl_->changed) {
    Impl::Channel& channel = impl_->channels[number];
    channel.changed = false;
    if (channel.told) {
      impl_->adapt(number);
    } else {
      channel.since = date;
      impl_->begin(number, degraded);
    }
  }
  impl_->changed.clear();
}

void Channels::finish(std::size_t number, double date, const std::function<void(std::uint64_t)>& ended) {
  Impl::Channel& channel = impl_->channels[number];
  channel.told = false;
  const double lasted = date - channel.since;
  const double rate = lasted > 0 ? channel.flows.granted() / channel.flows.weight() / lasted : 0;  // of one flow
  channel.flows.end(rate * SimEngine::tolerance(date), ended);
  if (channel.flows.idle())
    impl_->release(number);
  else
    impl_->change(number);
}

void Channels::Impl::begin(std::size_t number, const std::map<int, double>& degraded) {
  Channel& channel = channels[number];
  const double volume = channel.flows.grant();
  // A flow can never be faster than its links were when it started, so let them look as fast as they may become.
  for (const auto& [link, bandwidth] : degraded) platform.set_bandwidth(link, platform.link(link).bandwidth);
  simgrid.start_flow(number, channel.src, channel.dst, volume, channel.flows.weight());
  for (const auto& [link, bandwidth] : degraded) platform.set_bandwidth(link, bandwidth);
  channel.told = true;
}

/// More flows join those under way. What ends at this very date is left alone: it is told of next.
void Channels::Impl::adapt(std::size_t number) {
  Channel& channel = channels[number];
  if (!channel.flows.waits()) return;
  const double now = simgrid.clock();
  const auto [left, rate] = simgrid.progress(number);
  if (left <= rate * SimEngine::tolerance(now)) return;
  channel.flows.has_left(left);
  const double volume = channel.flows.grant();
  simgrid.change_flow(number, volume, channel.flows.weight());
  channel.since = now;
}

}  // namespace epocast
