#include "costmodels/host_offload.hpp"

#include <algorithm>
#include <vector>

namespace epocast {
namespace {

/// Of all layers but the input, in bytes; what is there anyway stays where it is.
std::vector<double> kept_bytes(const WorkloadTrace& trace) {
  std::vector<double> bytes;
  for (const LayerTrace& layer : trace.layers) bytes.push_back(layer.kept_activations.value);
  bytes.front() = 0;
  return bytes;
}

/// Of layers one after the other, apart from those that keep nothing.
double largest_pair(const std::vector<double>& bytes) {
  double most = 0, before = 0;
  for (const double one : bytes) {
    if (!(one > 0)) continue;
    most = std::max(most, before + one);
    before = one;
  }
  return most;
}

/// A device and its link, which works beside it.
class CopyingPass {
 public:
  CopyingPass(double rate, double buffer) : rate_(rate), buffer_(buffer) {}

  /// s that a layer's forward pass takes with the waiting after it.
  double forward(double time, double bytes) {
    const double before = device_;
    device_ += time;
    if (bytes > 0) link_ = std::max(link_, device_) + bytes / rate_;
    device_ = std::max(device_, link_ - buffer_ / rate_);
    return device_ - before;
  }

  /// Waits for the next so many bytes that backward reads; gives s.
  double wait_for(double bytes) {
    if (!(bytes > 0)) return 0;
    fetched_ += bytes;
    if (fetched_ <= buffer_) return 0;  // has not left since the forward pass
    const auto room = std::ranges::lower_bound(used_, fetched_ - buffer_, {}, &std::pair<double, double>::first);
    link_ = std::max(link_, room == used_.end() ? 0 : room->second) + bytes / rate_;
    const double waited = std::max(0.0, link_ - device_);
    device_ += waited;
    return waited;
  }
  void backward(double time, double bytes) {
    device_ += time;
    used_.emplace_back((used_.empty() ? 0 : used_.back().first) + bytes, device_);
  }

 private:
  double rate_, buffer_;
  double device_ = 0, link_ = 0, fetched_ = 0;
  std::vector<std::pair<double, double>> used_;  ///< bytes so far, and when
};

}  // namespace

void HostOffload::apply(WorkloadTrace& trace, Optimizer how, int devices) const {
  if (optimizer) offload_updates(trace, how, devices);
  if (activations) offload_activations(trace);
}

void HostOffload::offload_updates(WorkloadTrace& trace, Optimizer how, int devices) const {
  trace.state_on_host = true;
  const double accesses =
      4.0 * optimizer_accesses(how) / bytes_per_value(trace.precision);  // bytes for each of weights
  for (LayerTrace& layer : trace.layers) {
    if (!(layer.parameters.value > 0)) continue;
    const double copy = layer.parameters.value / copy_rate();
    const double update = layer.parameters.value * accesses * devices / host_memory.value;
    layer.times.update = Seconds(overlap ? std::max(copy, update) : 2 * copy + update);
  }
}

void HostOffload::offload_activations(WorkloadTrace& trace) const {
  const std::vector<double> bytes = kept_bytes(trace);
  double all = 0;
  for (const double one : bytes) all += one;
  if (!(all > 0)) return;
  const double room = std::min(all, std::max(overlap ? buffer.value : 0, largest_pair(bytes)));
  trace.staging = Bytes(room);
  trace.host_link = {.rate = BytesPerSecond(copy_rate()), .buffer = overlap ? buffer : Bytes(0), .overlaps = overlap};
  CopyingPass forward(copy_rate(), room), backward(copy_rate(), room);
  const std::size_t n = trace.layers.size();
  for (std::size_t l = 0; l < n; ++l) {
    LayerTrace& layer = trace.layers[l];
    const double time = layer.times.forward.longest().value;
    const double with_copies = overlap ? forward.forward(time, bytes[l]) : time + bytes[l] / copy_rate();
    layer.times.forward = Seconds(with_copies);
    layer.times.copy_out = Seconds(with_copies - time);
  }
  std::size_t there = n;  // what this layer and those behind it keep has come back
  for (std::size_t l = n; l-- > 1;) {
    LayerTrace& layer = trace.layers[l];
    double waited = overlap ? 0 : bytes[l] / copy_rate();
    while (overlap && there > 0 && (there >= l || !(bytes[there] > 0))) waited += backward.wait_for(bytes[--there]);
    backward.backward(layer.times.backward().longest().value, bytes[l]);
    layer.times.backward_data += Seconds(waited);
    layer.times.copy_in = Seconds(waited);
  }
  for (std::size_t l = 1; l < n; ++l) {
    trace.layers[l].offloaded = Bytes(bytes[l]);
    trace.layers[l].kept_activations = Bytes(0);
  }
}

}  // namespace epocast
