#include "strategies/partitioners/contiguous_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace epocast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Sums over layers before each boundary, so that any range costs one subtraction.
struct Prefix {
  std::vector<double> compute{0}, parameters{0};
  std::vector<std::size_t> timed{0};  ///< layers that take time

  explicit Prefix(const WorkloadTrace& trace) {
    for (const LayerTrace& layer : trace.layers) {
      const double time = layer.times.total().value;
      compute.push_back(compute.back() + time);
      parameters.push_back(parameters.back() + layer.parameters.value);
      timed.push_back(timed.back() + (time > 0 ? 1 : 0));
    }
  }

  double stage_time(std::size_t first, std::size_t last, int replicas, double bandwidth) const {
    const double reduce = 2.0 * (replicas - 1) * (parameters[last] - parameters[first]) / bandwidth;
    return std::max(compute[last] - compute[first], reduce) / replicas;
  }
};

/// Best continuation from a boundary with so many devices (and stages) left.
struct Choice {
  double cost = kNever;
  std::size_t last = 0;
  int replicas = 0;
};

class Splitter {
 public:
  Splitter(const WorkloadTrace& trace, const SplitOptions& options)
      : options_(options), prefix_(trace), layers_(trace.layers.size()), devices_(options.devices) {
    for (const Bytes bytes : cut_bytes(trace)) cut_.push_back(bytes.value);
    counts_stages_ = options.stages || options.memory;
    const auto useful = static_cast<int>(std::min<std::size_t>(prefix_.timed.back(), 1u << 20));
    max_stages_ = counts_stages_ ? std::min(options.stages.value_or(devices_), std::max(useful, 1)) : 1;
    if (!options.replicate && options.stages) devices_ = *options.stages;
  }

  /// Minimum over all splits: of the slowest stage or link, or, if `limit` is given, of the bytes sent by splits that
  /// are no slower than it. Infinity if there is none.
  double solve(std::optional<double> limit) {
    table_.assign(layers_ * (static_cast<std::size_t>(devices_) + 1) * (static_cast<std::size_t>(max_stages_) + 1), {});
    for (std::size_t first = layers_; first-- > 0;)
      for (int devices = 1; devices <= devices_; ++devices)
        for (int stages = 1; stages <= max_stages_; ++stages)
          at(first, devices, stages) = best(first, devices, stages, limit);
    start_ = {0, 0};
    double found = kNever;
    // Without replicas, devices may stay idle.
    for (int devices = options_.replicate ? devices_ : 1; devices <= devices_; ++devices)
      for (int stages = counts_stages_ && options_.stages ? *options_.stages : 1; stages <= max_stages_; ++stages) {
        const double cost = at(0, devices, stages).cost;
        if (cost >= found) continue;
        found = cost;
        start_ = {devices, stages};
      }
    return found;
  }

  /// The split of the last solve().
  std::vector<PipelineStage> stages() const {
    std::vector<PipelineStage> out;
    auto [devices, stages] = start_;
    for (std::size_t first = 0; first < layers_;) {
      const Choice& choice = table_[index(first, devices, stages)];
      const double time = prefix_.stage_time(first, choice.last, choice.replicas, options_.bandwidth.value);
      out.push_back({first, choice.last, choice.replicas, Seconds(time), Bytes(cut_[choice.last - 1])});
      first = choice.last;
      devices -= choice.replicas;
      if (counts_stages_) --stages;
    }
    return out;
  }

 private:
  std::size_t index(std::size_t first, int devices, int stages) const {
    return (first * (static_cast<std::size_t>(devices_) + 1) + static_cast<std::size_t>(devices)) *
               (static_cast<std::size_t>(max_stages_) + 1) +
           static_cast<std::size_t>(stages);
  }
  Choice& at(std::size_t first, int devices, int stages) { return table_[index(first, devices, stages)]; }

  bool fits(const StagePosition& position) const {
    return !options_.memory || options_.memory_of(position) <= *options_.memory;
  }

  /// Layers from `first` on, on exactly `devices` devices in (if they are counted) exactly `stages` stages.
  Choice best(std::size_t first, int devices, int stages, std::optional<double> limit) {
    Choice out;
    const int most = options_.replicate ? devices : 1;
    for (int replicas = 1; replicas <= most; ++replicas) {
      for (std::size_t last = first + 1; last <= layers_; ++last) {
        if (prefix_.timed[last] == prefix_.timed[first]) continue;
        // A stage only gets slower by taking in more layers.
        const double time = prefix_.stage_time(first, last, replicas, options_.bandwidth.value);
        if (limit ? time > *limit : time >= out.cost) break;
        const bool ends = last == layers_;
        if (ends && (replicas != devices || (counts_stages_ && stages != 1))) continue;
        if (!ends && (replicas == devices || (counts_stages_ && stages == 1))) continue;
        const double link = 2 * cut_[last - 1] / options_.bandwidth.value;
        if (limit && link > *limit) continue;
        const double rest = ends ? 0 : at(last, devices - replicas, counts_stages_ ? stages - 1 : stages).cost;
        const double cost = limit ? rest + cut_[last - 1] : std::max({time, link, rest});
        if (cost >= out.cost || !fits({first, last, replicas, stages, devices})) continue;
        out = {cost, last, replicas};
      }
    }
    return out;
  }

  const SplitOptions& options_;
  Prefix prefix_;
  std::size_t layers_;
  int devices_;
  std::vector<double> cut_;
  bool counts_stages_ = false;
  int max_stages_ = 1;
  std::vector<Choice> table_;
  std::pair<int, int> start_;
};

void check(const WorkloadTrace& trace, const SplitOptions& options) {
  if (options.devices < 1) throw std::invalid_argument("a split needs at least one device");
  if (!(options.bandwidth.value > 0)) throw std::invalid_argument("a split needs a positive bandwidth");
  if (options.memory && !options.memory_of) throw std::invalid_argument("a memory limit needs a rule of memory");
  if (options.stages && *options.stages < 1) throw std::invalid_argument("a split needs at least one stage");
  const auto timed = std::count_if(trace.layers.begin(), trace.layers.end(),
                                   [](const LayerTrace& layer) { return layer.times.total().value > 0; });
  if (timed == 0) throw SplitError("no layer takes any time");
  if (!options.stages) return;
  if (*options.stages > options.devices)
    throw SplitError(
        fmt::format("{} stages need {} devices, but there are {}", *options.stages, *options.stages, options.devices));
  if (*options.stages > timed)
    throw SplitError(fmt::format("{} stages, but only {} layers take time", *options.stages, timed));
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
  return Seconds(Prefix(trace).stage_time(first, last, replicas, bandwidth.value));
}

ContiguousSplit split_contiguous(const WorkloadTrace& trace, const SplitOptions& options) {
  check(trace, options);
  Splitter splitter(trace, options);
  const double slowest = splitter.solve(std::nullopt);
  if (slowest == kNever) {
    if (options.memory) throw SplitError(memory_problem(trace, options));
    throw SplitError(fmt::format("the network cannot be split over {} devices", options.devices));
  }
  const double sent = splitter.solve(slowest);
  return {splitter.stages(), Seconds(slowest), Bytes(sent)};
}

}  // namespace epocast
