#include "sim/simgrid/channels.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/simgrid/pair_flows.hpp"

namespace epocast {

namespace s4u = ::simgrid::s4u;
using ::simgrid::kernel::resource::Action;
using ::simgrid::kernel::resource::Model;

struct Channels::Impl {
  struct Channel {
    int src = 0, dst = 0;
    bool of_pair = false;  // of all flows between the two
    PairFlows flows;
    s4u::CommPtr comm;
    Action* action = nullptr;  // SimGrid's, of `comm`
    double since = 0;          // date of the last grant
    bool changed = false;
  };

  Impl(const s4u::Engine& engine, SimPlatform& of);
  std::size_t channel_for(int src, int dst);
  void release(std::size_t number);
  void change(std::size_t number);
  void start_comm(std::size_t number, const std::map<int, double>& degraded);
  static void adapt_comm(Channel& channel);

  SimPlatform& platform;
  Model* network = nullptr;  // SimGrid's
  std::deque<Channel> channels;
  std::unordered_map<std::uint64_t, std::size_t> of_pairs;  // those that have flows; key: SimPlatform::pair_key()
  std::vector<std::size_t> free;
  std::vector<std::size_t> changed;  // of which SimGrid has to be told
  s4u::CommPtr finished;
};

Channels::Impl::Impl(const s4u::Engine& engine, SimPlatform& of) : platform(of) {
  for (Model* model : engine.get_all_models())
    if (model->get_name().starts_with("Network")) network = model;
  if (network == nullptr) throw std::logic_error("SimGrid has no network model");
}

Channels::Channels(const s4u::Engine& engine, SimPlatform& platform)
    : impl_(std::make_unique<Impl>(engine, platform)) {}

Channels::~Channels() {
  for (Impl::Channel& channel : impl_->channels)
    if (channel.comm) channel.comm->set_state(s4u::Activity::State::CANCELED);  // or its destructor prints a backtrace
}

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
    if (channel.comm) {
      Impl::adapt_comm(channel);
    } else {
      channel.since = date;
      impl_->start_comm(number, degraded);
    }
  }
  impl_->changed.clear();
}

void Channels::finish(std::size_t number, double date, const std::function<void(std::uint64_t)>& ended) {
  Impl::Channel& channel = impl_->channels[number];
  // Let go when the next one ends: its memory is then the first to be used again, and is still in the cache.
  impl_->finished = std::exchange(channel.comm, nullptr);
  channel.action = nullptr;
  const double lasted = date - channel.since;
  const double rate = lasted > 0 ? channel.flows.granted() / channel.flows.weight() / lasted : 0;  // of one flow
  channel.flows.end(rate * SimEngine::tolerance(date), ended);
  if (channel.flows.idle())
    impl_->release(number);
  else
    impl_->change(number);
}

void Channels::Impl::start_comm(std::size_t number, const std::map<int, double>& degraded) {
  Channel& channel = channels[number];
  const double volume = channel.flows.grant();
  channel.comm = s4u::Comm::sendto_init(platform.handle(channel.src), platform.handle(channel.dst));
  channel.comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(volume)));
  channel.comm->set_data(reinterpret_cast<void*>(number));
  // A flow can never be faster than its links were when it started, so let them look as fast as they may become.
  for (const auto& [link, bandwidth] : degraded) platform.set_bandwidth(link, platform.link(link).bandwidth);
  channel.comm->start();
  for (const auto& [link, bandwidth] : degraded) platform.set_bandwidth(link, bandwidth);
  channel.action = &network->get_started_action_set()->back();
  channel.action->set_remains(volume);
  if (channel.flows.weight() > 1) channel.action->set_sharing_penalty(1 / channel.flows.weight());
}

/// More flows join those under way. What ends at this very date is left alone: it is told of next.
void Channels::Impl::adapt_comm(Channel& channel) {
  if (!channel.flows.waits()) return;
  Action& action = *channel.action;
  const double now = s4u::Engine::get_clock();
  const double left = action.get_remains_no_update() - action.get_last_value() * (now - action.get_last_update());
  if (action.get_state() != Action::State::STARTED || left <= action.get_last_value() * SimEngine::tolerance(now))
    return;
  channel.flows.has_left(left);
  action.set_remains(channel.flows.grant());
  action.set_last_update();
  action.set_sharing_penalty(1 / channel.flows.weight());
  channel.since = now;
}

}  // namespace epocast
