#include "strategies/partitioners/contiguous_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "sim/words.hpp"
#include "strategies/partitioners/stage_times.hpp"

namespace epocast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A way to go on from a boundary with so many devices left.
struct Continuation {
  double cost = 0;
  int stages = 0;  ///< if they matter, 0 otherwise
  std::size_t last = 0;
  int replicas = 0;
  std::size_t next = 0;  ///< index of what follows among the continuations from `last`
};

/// Dynamic programme over (first layer, devices left) for a given pace: no stage and no link may be slower. What is
/// upstream cares for the number of stages from there on, as memory depends on it, and for the bytes they send: each
/// state keeps the continuations of which no other is as good in both. The fastest pace is found by bisection among the
/// times that a stage or a link can have; there, a continuation with the fewest stages is all that counts.
class Splitter {
 public:
  Splitter(const WorkloadTrace& trace, const SplitOptions& options)
      : options_(options),
        times_(trace, options),
        timed_(count_timed(trace)),
        layers_(trace.layers.size()),
        devices_(options.devices) {
    for (const Bytes bytes : cut_bytes(trace)) cut_.push_back(bytes.value);
    for (const double bytes : cut_) link_.push_back(2 * bytes / options.bandwidth.value);
    if (!options.replicate && options.stages && options.replicas.empty()) devices_ = *options.stages;
    if (!options.replicas.empty()) {
      fixed_.assign(static_cast<std::size_t>(devices_) + 1, 0);
      int left = devices_;
      for (const int replicas : options.replicas) {
        fixed_[index(left)] = replicas;
        left -= replicas;
      }
    }
    counts_ = replica_counts();
    counts_stages_ = options.stages || options.memory;
    slot_.resize(static_cast<std::size_t>(devices_) + 1);
    for (int devices = 1; devices <= devices_; ++devices) {
      if (!fixed_.empty() && fixed_[index(devices)] == 0) continue;  // no stage begins with so many left
      slot_[index(devices)] = left_.size();
      left_.push_back(devices);
    }
    table_.resize((layers_ + 1) * left_.size());
    reach_.resize(static_cast<std::size_t>(devices_) + 1);
    nearest_.resize(static_cast<std::size_t>(devices_) + 1);
  }

  /// The smallest `slowest` of all splits; infinity if there is none.
  double fastest_pace() {
    if (!solve(kNever, false)) return kNever;
    double found = slowest(), excluded = times_.work(layers_) / devices_ * (1 - kRounding);
    while (const std::optional<double> middle = median_pace(excluded, found)) {
      if (solve(*middle, false))
        found = slowest();
      else
        excluded = *middle;
    }
    return found;
  }

  /// Whether there is a split that is no slower than `pace`; if bytes count, it is the one that sends the fewest.
  bool solve(double pace, bool bytes_count) {
    pace_ = pace;
    bytes_count_ = bytes_count;
    std::fill(nearest_.begin(), nearest_.end(), layers_);
    for (auto& state : table_) state.clear();
    for (std::size_t first = layers_; first-- > 0;) {
      if (timed_[first] == timed_[layers_]) continue;
      for (const int replicas : counts_) reach_[index(replicas)] = furthest(first, replicas, pace);
      for (const int devices : left_) fill(first, devices);
      for (const int devices : left_)
        if (!from(first, devices).empty()) nearest_[index(devices)] = first;
    }
    start_ = nullptr;
    // Without replicas, devices may stay idle.
    for (int devices = options_.replicate ? devices_ : 1; devices <= devices_; ++devices)
      for (const Continuation& whole : from(0, devices)) {
        if (options_.stages && whole.stages != *options_.stages) continue;
        if (start_ && whole.cost >= start_->cost) continue;
        start_ = &whole;
        start_devices_ = devices;
      }
    return start_ != nullptr;
  }

  /// The split of the last solve(). REQUIRES: there was one.
  std::vector<PipelineStage> stages() const {
    std::vector<PipelineStage> out;
    const Continuation* now = start_;
    int devices = start_devices_;
    for (std::size_t first = 0;;) {
      const double time = times_(first, now->last, now->replicas);
      out.push_back({first, now->last, now->replicas, Seconds(time), Bytes(cut_[now->last - 1])});
      if (now->last == layers_) return out;
      first = now->last;
      devices -= now->replicas;
      now = &from(first, devices)[now->next];
    }
  }

 private:
  /// Bounds are sums in another order than the times that they bound.
  static constexpr double kRounding = 1e-9;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const std::vector<Continuation>& from(std::size_t first, int devices) const {
    return table_[first * left_.size() + slot_[index(devices)]];
  }

  /// How many replicas the stage may have that begins where so many devices are left.
  bool may_have(int replicas, int devices) const {
    const bool wanted = fixed_.empty() ? options_.replicate || replicas == 1 : fixed_[index(devices)] == replicas;
    return wanted && replicas <= devices && times_.allows(replicas);
  }
  /// All numbers of replicas that any stage may have.
  std::vector<int> replica_counts() const {
    const std::set<int> fixed(fixed_.begin(), fixed_.end());
    std::vector<int> out;
    for (int replicas = 1; replicas <= devices_; ++replicas) {
      const bool wanted = fixed_.empty() ? options_.replicate || replicas == 1 : fixed.contains(replicas);
      if (wanted && times_.allows(replicas)) out.push_back(replicas);
    }
    return out;
  }

  /// The end of the shortest stage from `first` on: with one layer that takes time. REQUIRES: there is one.
  std::size_t nearest_end(std::size_t first) const {
    const auto found = std::upper_bound(timed_.begin(), timed_.end(), timed_[first]);
    return static_cast<std::size_t>(found - timed_.begin());
  }

  /// The last boundary that a stage from `first` on reaches within `limit`: it only gets slower by more layers.
  std::size_t furthest(std::size_t first, int replicas, double limit) const {
    std::size_t good = first, bad = layers_ + 1;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (times_(first, middle, replicas) <= limit ? good : bad) = middle;
    }
    return good;
  }

  /// How many links carry what goes from a stage to the next: PipeDream's rule has one, whatever the replicas, without
  /// which a state would have to know those of the next stage.
  int links_between(int replicas, int next_replicas) const {
    return fixed_.empty() ? 1 : std::min(replicas, next_replicas);
  }

  double slowest() const {
    double out = 0;
    const std::vector<PipelineStage> all = stages();
    for (std::size_t s = 0; s < all.size(); ++s) {
      out = std::max(out, all[s].time.value);
      if (s + 1 < all.size())
        out = std::max(out, link_[all[s].last - 1] / links_between(all[s].replicas, all[s + 1].replicas));
    }
    return out;
  }

  /// A time of a stage or link between these (neither included) with a fair part of all such times on both sides of it;
  /// none if there is no such time. The weighted median of the medians of sorted rows.
  std::optional<double> median_pace(double above, double below) const {
    std::vector<std::pair<double, std::size_t>> medians;  // with how many there are in the row
    std::size_t all = 0;
    const auto add = [&](double median, std::size_t count) {
      medians.emplace_back(median, count);
      all += count;
    };
    for (const double all_data : link_)
      for (const int links : fixed_.empty() ? std::vector<int>{1} : counts_)
        if (const double link = all_data / links; link > above && link < below) add(link, 1);
    for (std::size_t first = 0; first < layers_ && timed_[first] < timed_[layers_]; ++first)
      for (const int replicas : counts_) {
        const std::size_t begin = std::max(furthest(first, replicas, above) + 1, nearest_end(first));
        const std::size_t end = furthest(first, replicas, std::nextafter(below, 0.0)) + 1;
        if (begin < end) add(times_(first, begin + (end - begin) / 2, replicas), end - begin);
      }
    if (all == 0) return std::nullopt;
    std::sort(medians.begin(), medians.end());
    std::size_t before = 0;
    for (const auto& [median, count] : medians)
      if (before += count; 2 * before >= all) return median;
    return medians.back().first;
  }

  bool fits(const StagePosition& position) const {
    return !options_.memory || options_.memory_of(position) <= *options_.memory;
  }

  /// Whether the devices that are left say how many stages are.
  bool devices_tell_stages() const { return !options_.replicate || !fixed_.empty(); }

  /// Whether so many stages from a boundary on can be part of a split; `devices` are there for them.
  bool can_be(int stages, int devices) const {
    if (!options_.stages) return true;
    return stages <= std::min(*options_.stages, devices) && stages >= *options_.stages - (devices_ - devices);
  }

  bool as_good(const Continuation& one, const Continuation& other) const {
    if (one.cost > other.cost) return false;
    return options_.stages ? one.stages == other.stages : one.stages <= other.stages;
  }

  /// Whether nothing but a single stage can add to a state, if bytes do not count.
  bool complete(const std::vector<Continuation>& state, int devices) const {
    if (bytes_count_ || state.empty()) return false;
    if (!options_.stages) return !counts_stages_ || state.front().stages <= 2;
    if (!options_.replicate || !fixed_.empty()) return true;
    const int least = std::max(2, *options_.stages - (devices_ - devices));
    return static_cast<int>(state.size()) > std::min(*options_.stages, devices) - least;
  }

  /// Returns false if the stage is too large.
  bool consider(std::vector<Continuation>& state, const Continuation& candidate, std::size_t first, int devices) {
    for (const Continuation& known : state)
      if (as_good(known, candidate)) return true;
    if (!fits({first, candidate.last, candidate.replicas, std::max(candidate.stages, 1), devices})) return false;
    std::erase_if(state, [&](const Continuation& known) { return as_good(candidate, known); });
    state.push_back(candidate);
    return true;
  }

  /// All that is worth knowing about layers from `first` on, on exactly `devices` devices.
  void fill(std::size_t first, int devices) {
    // With what is computed before and after this boundary in the time that all devices have.
    const double done = times_.work(first), open = times_.work(layers_) - done;
    if (open > devices * pace_ * (1 + kRounding) || done > (devices_ - devices) * pace_ * (1 + kRounding)) return;
    std::vector<Continuation>& state = table_[first * left_.size() + slot_[index(devices)]];
    const std::size_t nearest = nearest_end(first);
    for (const int replicas : counts_) {
      if (replicas >= devices) break;
      if (!may_have(replicas, devices)) continue;
      const std::size_t end = std::min(reach_[index(replicas)], layers_ - 1);
      const int links = links_between(replicas, fixed_.empty() ? 1 : fixed_[index(devices - replicas)]);
      bool has_room = true;
      for (std::size_t last = std::max(nearest, nearest_[index(devices - replicas)]); last <= end && has_room; ++last) {
        if (link_[last - 1] / links > pace_) continue;
        const std::vector<Continuation>& rest = from(last, devices - replicas);
        for (std::size_t next = 0; next < rest.size(); ++next) {
          const int stages = counts_stages_ ? rest[next].stages + 1 : 0;
          const double cost = bytes_count_ ? rest[next].cost + cut_[last - 1] : 0;
          if (!can_be(stages, devices)) continue;
          const bool fits_in = consider(state, {cost, stages, last, replicas, next}, first, devices);
          if (!fits_in && devices_tell_stages()) has_room = false;  // nor do longer ones fit
        }
        if (complete(state, devices)) break;
      }
      if (complete(state, devices)) break;
    }
    if (!may_have(devices, devices) || reach_[index(devices)] < layers_ || !can_be(1, devices)) return;
    consider(state, {0, counts_stages_ ? 1 : 0, layers_, devices, 0}, first, devices);
  }

  SplitOptions options_;
  StageTimes times_;
  std::vector<std::size_t> timed_;
  std::size_t layers_;
  int devices_;
  std::vector<double> cut_, link_;  ///< bytes, and time, across the boundary after each layer
  bool counts_stages_ = false;
  double pace_ = 0;
  bool bytes_count_ = false;
  std::vector<int> fixed_;         ///< replicas of the stage that begins with so many devices left; or none
  std::vector<int> counts_;        ///< numbers of replicas
  std::vector<int> left_;          ///< how many devices can be left where a stage begins
  std::vector<std::size_t> slot_;  ///< by devices left: place in left_
  std::vector<std::vector<Continuation>> table_;  ///< by first layer and slot
  std::vector<std::size_t> reach_;                ///< by replicas, of a stage from the layer at hand on
  std::vector<std::size_t> nearest_;              ///< by devices: the first layer from which one can go on
  const Continuation* start_ = nullptr;
  int start_devices_ = 0;
};

void check(const WorkloadTrace& trace, const SplitOptions& options) {
  if (options.devices < 1) throw std::invalid_argument("a split needs at least one device");
  if (!(options.bandwidth.value > 0)) throw std::invalid_argument("a split needs a positive bandwidth");
  if (options.memory && !options.memory_of) throw std::invalid_argument("a memory limit needs a rule of memory");
  if (options.stages && *options.stages < 1) throw std::invalid_argument("a split needs at least one stage");
  const auto timed = std::count_if(trace.layers.begin(), trace.layers.end(),
                                   [](const LayerTrace& layer) { return layer.times.total().any(); });
  if (timed == 0) throw SplitError("no layer takes any time");
  for (const int replicas : options.replicas)
    if (replicas < 1) throw std::invalid_argument("a stage needs at least one device");
  if (!options.replicas.empty() &&
      std::accumulate(options.replicas.begin(), options.replicas.end(), 0) != options.devices)
    throw std::invalid_argument("the stages' replicas are not the devices");
  if (!(options.batches_per_update > 0)) throw std::invalid_argument("updates need batches");
  if (!options.stages) return;
  if (*options.stages > options.devices)
    throw SplitError(
        fmt::format("{} stages need {} devices, but there are {}", *options.stages, *options.stages, options.devices));
  if (*options.stages > timed)
    throw SplitError(fmt::format("{} stages, but only {} {} time", *options.stages, counted(timed, "layer"),
                                 timed == 1 ? "takes" : "take"));
}

/// Why nothing fits: what the split would be without the limit, and which of its stages needs how much too much.
std::string memory_problem(const WorkloadTrace& trace, SplitOptions options) {
  const Bytes limit = *options.memory;
  const std::function<Bytes(const StagePosition&)> memory_of = options.memory_of;
  options.memory.reset();
  const std::vector<PipelineStage> stages = split_contiguous(trace, options).stages;
  StagePosition worst;
  Bytes most;
  int devices = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    devices += stages[s].replicas;
    const StagePosition position{stages[s].first, stages[s].last, stages[s].replicas,
                                 static_cast<int>(stages.size() - s), devices};
    const Bytes need = memory_of(position);
    if (need <= most) continue;
    most = need;
    worst = position;
  }
  return fmt::format(
      "no split over {} devices keeps every stage within {} of memory; in the fastest one, the stage from '{}' to '{}' "
      "needs {}, {} too much",
      options.devices, to_string(limit), trace.layers[worst.first].name, trace.layers[worst.last - 1].name,
      to_string(most), to_string(most - limit));
}

}  // namespace

std::vector<Bytes> cut_bytes(const WorkloadTrace& trace) {
  std::vector<std::size_t> last_reader(trace.layers.size());
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    last_reader[l] = l;
    for (const int input : trace.layers[l].inputs) last_reader[static_cast<std::size_t>(input)] = l;
  }
  // Each output is alive from its own boundary to the one before its last reader.
  std::vector<Bytes> out(trace.layers.size());
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    for (std::size_t boundary = l; boundary < last_reader[l]; ++boundary) out[boundary] += trace.layers[l].output;
  return out;
}

Seconds stage_time(const WorkloadTrace& trace, std::size_t first, std::size_t last, int replicas,
                   BytesPerSecond bandwidth) {
  return Seconds(StageTimes(trace, {.devices = replicas, .bandwidth = bandwidth})(first, last, replicas));
}

ContiguousSplit split_contiguous(const WorkloadTrace& trace, const SplitOptions& options) {
  SplitOptions own = options;
  if (!own.replicas.empty()) own.stages = static_cast<int>(own.replicas.size());
  own.replicate |= !own.replicas.empty();
  check(trace, own);
  Splitter splitter(trace, own);
  const double slowest = splitter.fastest_pace();
  if (slowest == kNever) {
    if (options.memory) throw SplitError(memory_problem(trace, options));
    throw SplitError(fmt::format("the network cannot be split over {} devices", options.devices));
  }
  splitter.solve(slowest, true);
  ContiguousSplit out{splitter.stages(), Seconds(slowest), Bytes(0)};
  for (const PipelineStage& stage : out.stages) out.sent += stage.sent;
  return out;
}

}  // namespace epocast
