// The dynamic programme finds what trying out all splits finds, on random networks with branches, with and without
// replicas, a given number of stages or of each one's replicas, and memory limits.
#include "strategies/partitioners/contiguous_split.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "strategies/partitioners/unequal_split.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::contiguous_split_test {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A network of up to 9 layers; each reads one or two earlier ones. Some take no time. Times and sizes are small whole
/// numbers, so that ties are common.
WorkloadTrace random_network(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const std::size_t layers = 2 + below(8);
  WorkloadTrace trace{"random", 1, {}};
  for (std::size_t l = 0; l < layers; ++l) {
    LayerTrace layer = testing::layer("l" + std::to_string(l), below(4) == 0 && l > 0 ? 0.0 : 1.0 + double(below(9)), 0,
                                      0, {double(below(6))});
    layer.output = Bytes(double(below(12)));
    layer.kept_activations = Bytes(double(below(8)));
    if (l > 0) layer.inputs.push_back(static_cast<int>(below(2) == 0 ? l - 1 : below(l)));
    if (l > 1 && below(3) == 0) layer.inputs.push_back(static_cast<int>(below(l)));
    trace.layers.push_back(layer);
  }
  return trace;
}

/// What crosses the boundary before layer `first`, from its definition.
double crossing(const WorkloadTrace& trace, std::size_t first) {
  double bytes = 0;
  for (std::size_t l = 0; l < first; ++l) {
    bool read_later = false;
    for (std::size_t reader = first; reader < trace.layers.size(); ++reader)
      for (const int input : trace.layers[reader].inputs) read_later |= static_cast<std::size_t>(input) == l;
    if (read_later) bytes += trace.layers[l].output.value;
  }
  return bytes;
}

struct Found {
  double slowest = kNever;
  double sent = kNever;
};

/// Tries out all ways to go on from layer `first`.
void search(const WorkloadTrace& trace, const SplitOptions& options, std::vector<PipelineStage>& made, Found& best) {
  const std::size_t first = made.empty() ? 0 : made.back().last;
  int used = 0;
  for (const PipelineStage& stage : made) used += stage.replicas;
  if (first == trace.layers.size()) {
    if (options.replicate && used != options.devices) return;
    if (options.stages && made.size() != static_cast<std::size_t>(*options.stages)) return;
    if (!options.replicas.empty() && made.size() != options.replicas.size()) return;
    double slowest = 0, sent = 0;
    int devices = 0;
    for (std::size_t s = made.size(); s-- > 0;) {
      const PipelineStage& stage = made[s];
      devices += stage.replicas;
      if (options.memory && options.memory_of({stage.first, stage.last, stage.replicas,
                                               static_cast<int>(made.size() - s), devices}) > *options.memory)
        return;
      const int links = options.replicas.empty() || s == 0 ? 1 : std::min(stage.replicas, made[s - 1].replicas);
      const double m = stage.replicas, bandwidth = options.bandwidth.value;
      const WorkloadTrace* shared = options.trace_of ? options.trace_of(stage.replicas) : nullptr;
      if (options.trace_of && shared == nullptr) return;
      double compute = 0, parameters = 0;
      for (std::size_t l = stage.first; l < stage.last; ++l) {
        compute += (shared ? *shared : trace).layers[l].times.total().longest().value;
        parameters += trace.layers[l].parameters.value;
      }
      if (compute == 0) return;
      if (!shared) compute /= m;
      const double reduce = 2 * (m - 1) * parameters / bandwidth / options.batches_per_update / m;
      slowest = std::max({slowest, options.reductions_overlap ? std::max(compute, reduce) : compute + reduce,
                          2 * crossing(trace, stage.first) / bandwidth / links});
      sent += crossing(trace, stage.first);
    }
    if (slowest < best.slowest || (slowest == best.slowest && sent < best.sent)) best = {slowest, sent};
    return;
  }
  const bool given = !options.replicas.empty();
  if (given && made.size() == options.replicas.size()) return;
  const int most = options.replicate ? options.devices - used : std::min(1, options.devices - used);
  for (int replicas = given ? options.replicas[made.size()] : 1; replicas <= (given ? replicas : most); ++replicas) {
    for (std::size_t last = first + 1; last <= trace.layers.size(); ++last) {
      made.push_back({first, last, replicas, Seconds(0), Bytes(0)});
      search(trace, options, made, best);
      made.pop_back();
    }
    if (given) break;
  }
}

/// Parameters once, activations once per batch in flight: so many as there are stages to come.
SplitOptions random_options(std::mt19937_64& random, const WorkloadTrace& trace) {
  SplitOptions options{.devices = 1 + static_cast<int>(random() % 4),
                       .stages = {},
                       .replicate = random() % 2 == 0,
                       .bandwidth = BytesPerSecond(double(std::uint64_t{1} << (random() % 5))),
                       .memory = {}};
  if (random() % 3 == 0) options.stages = 1 + static_cast<int>(random() % static_cast<unsigned>(options.devices));
  if (random() % 2 == 0) {
    options.memory = Bytes(double(5 + random() % 40));
    options.memory_of = [&trace](const StagePosition& position) {
      Bytes need;
      const int in_flight = (position.devices_from_here + position.replicas - 1) / position.replicas;
      for (std::size_t l = position.first; l < position.last; ++l)
        need += trace.layers[l].parameters * position.stages_from_here + trace.layers[l].kept_activations * in_flight;
      return need;
    };
  }
  return options;
}

/// Batches that replicas share at a cost of their own, in quarters of a second so that sums are exact, or that do not
/// divide by all numbers of replicas; replicas that are given.
struct Sharing {
  std::vector<WorkloadTrace> traces;

  void apply(std::mt19937_64& random, const WorkloadTrace& trace, SplitOptions& options) {
    if (random() % 3 == 0) {
      options.stages.reset();
      options.replicate = false;
      for (int left = options.devices; left > 0; left -= options.replicas.back())
        options.replicas.push_back(1 + static_cast<int>(random() % static_cast<unsigned>(left)));
    }
    if (random() % 2 == 0) options.batches_per_update = double(std::uint64_t{1} << (random() % 4));
    options.reductions_overlap = random() % 4 != 0;
    if (random() % 3 == 0) return;
    const double overhead = double(random() % 3);
    for (int replicas = 1; replicas <= options.devices; ++replicas) {
      WorkloadTrace& shared = traces.emplace_back(trace);
      for (LayerTrace& layer : shared.layers)
        if (const double alone = layer.times.total().longest().value; alone > 0)
          layer.times = {Seconds(std::ceil(4 * alone / replicas) / 4 + overhead), {}, {}, {}};
    }
    const int without = random() % 2 == 0 ? 3 : 0;
    options.trace_of = [this, without](int replicas) {
      return replicas == without ? nullptr : &traces[static_cast<std::size_t>(replicas) - 1];
    };
  }
};

}  // namespace

TEST_CASE("the contiguous split is the best of all splits") {
  constexpr int kGraphs = 2000;
  int feasible = 0, replicated = 0, with_memory = 0, memory_and_replicas = 0;
  for (int g = 0; g < kGraphs; ++g) {
    std::mt19937_64 random(static_cast<std::uint64_t>(g));
    const WorkloadTrace trace = random_network(random);
    SplitOptions options = random_options(random, trace);
    Sharing sharing;
    if (g >= kGraphs / 2) sharing.apply(random, trace, options);
    Found best;
    std::vector<PipelineStage> made;
    search(trace, options, made, best);
    INFO("graph " << g);
    if (best.slowest == kNever) {
      CHECK_THROWS_AS(split_contiguous(trace, options), SplitError);
      continue;
    }
    const ContiguousSplit split = split_contiguous(trace, options);
    CHECK(split.slowest.value == Approx(best.slowest).epsilon(1e-12));
    CHECK(split.sent.value == Approx(best.sent).epsilon(1e-12));

    // What it says about itself is so.
    REQUIRE(split.stages.front().first == 0);
    REQUIRE(split.stages.back().last == trace.layers.size());
    double slowest = 0;
    for (std::size_t s = 0; s < split.stages.size(); ++s) {
      const PipelineStage& stage = split.stages[s];
      if (s > 0) CHECK(stage.first == split.stages[s - 1].last);
      CHECK(stage.sent.value == crossing(trace, stage.last));
      if (!options.replicas.empty()) CHECK(stage.replicas == options.replicas[s]);
      if (g < kGraphs / 2)
        CHECK(stage.time == stage_time(trace, stage.first, stage.last, stage.replicas, options.bandwidth));
      const int links = options.replicas.empty() || s + 1 == split.stages.size()
                            ? 1
                            : std::min(stage.replicas, split.stages[s + 1].replicas);
      slowest = std::max({slowest, stage.time.value, 2 * stage.sent.value / options.bandwidth.value / links});
      replicated += stage.replicas > 1;
    }
    CHECK(slowest == Approx(split.slowest.value).epsilon(1e-12));
    ++feasible;
    with_memory += options.memory.has_value();
    memory_and_replicas += options.memory && split.stages.size() > 1 &&
                           std::any_of(split.stages.begin(), split.stages.end(),
                                       [](const PipelineStage& stage) { return stage.replicas > 1; });
  }
  // Most random networks can be split, many of them in the interesting ways.
  CHECK(feasible >= 1000);
  CHECK(replicated >= 250);
  CHECK(with_memory >= 250);
  CHECK(memory_and_replicas >= 50);
}

namespace {

/// Tries out all boundaries from stage s and layer `first` on. `of_stage`: each stage's own times, shared by its
/// replicas.
void search_unequal(const WorkloadTrace& trace, const SplitOptions& options,
                    const std::vector<const WorkloadTrace*>& of_stage, std::size_t s, std::size_t first, Found so_far,
                    Found& best) {
  if (s == of_stage.size()) {
    if (first < trace.layers.size()) return;
    if (so_far.slowest < best.slowest || (so_far.slowest == best.slowest && so_far.sent < best.sent)) best = so_far;
    return;
  }
  const double m = options.replicas[s], bandwidth = options.bandwidth.value;
  int from_here = 0;
  for (std::size_t later = s; later < of_stage.size(); ++later) from_here += options.replicas[later];
  for (std::size_t last = first + 1; last <= trace.layers.size(); ++last) {
    double compute = 0, parameters = 0;
    for (std::size_t l = first; l < last; ++l) {
      compute += of_stage[s]->layers[l].times.total().longest().value;
      parameters += trace.layers[l].parameters.value;
    }
    const StagePosition position{first, last, options.replicas[s], static_cast<int>(of_stage.size() - s), from_here};
    if (compute == 0 || (options.memory && options.memory_of(position) > *options.memory)) continue;
    const double reduce = 2 * (m - 1) * parameters / bandwidth / options.batches_per_update / m;
    Found next = so_far;
    next.slowest = std::max(next.slowest, options.reductions_overlap ? std::max(compute, reduce) : compute + reduce);
    if (s + 1 < of_stage.size())
      next.slowest = std::max(
          next.slowest, 2 * crossing(trace, last) / bandwidth / std::min(options.replicas[s], options.replicas[s + 1]));
    next.sent += crossing(trace, last);
    search_unequal(trace, options, of_stage, s + 1, last, next, best);
  }
}

}  // namespace

TEST_CASE("the split over unequal devices is the best of all splits, and the usual one on equal devices") {
  int feasible = 0;
  for (int g = 0; g < 1000; ++g) {
    std::mt19937_64 random(static_cast<std::uint64_t>(g));
    const WorkloadTrace trace = random_network(random);
    SplitOptions options = random_options(random, trace);
    options.stages.reset();
    options.replicate = false;
    for (int left = options.devices; left > 0; left -= options.replicas.back())
      options.replicas.push_back(1 + static_cast<int>(random() % static_cast<unsigned>(left)));
    options.reductions_overlap = random() % 2 == 0;

    const bool equal = g % 4 == 0;
    std::vector<WorkloadTrace> traces;
    for (std::size_t s = 0; s < options.replicas.size(); ++s) {
      WorkloadTrace& own = traces.emplace_back(trace);
      const double slower = equal ? 1 : double(std::uint64_t{1} << (random() % 3));
      for (LayerTrace& layer : own.layers) layer.times = {layer.times.forward * slower, {}, {}, {}};
    }
    std::vector<const WorkloadTrace*> of_stage;
    for (const WorkloadTrace& own : traces) of_stage.push_back(&own);

    INFO("graph " << g);
    Found best;
    search_unequal(trace, options, of_stage, 0, 0, {0, 0}, best);
    if (best.slowest == kNever) {
      CHECK_THROWS_AS(split_unequal(trace, options, of_stage), SplitError);
      continue;
    }
    const ContiguousSplit split = split_unequal(trace, options, of_stage);
    CHECK(split.slowest.value == Approx(best.slowest).epsilon(1e-12));
    CHECK(split.sent.value == Approx(best.sent).epsilon(1e-12));
    ++feasible;
    if (!equal) continue;
    options.trace_of = [&](int) { return &traces.front(); };
    const ContiguousSplit usual = split_contiguous(trace, options);
    CHECK(split.slowest.value == Approx(usual.slowest.value).epsilon(1e-12));
    CHECK(split.sent.value == Approx(usual.sent.value).epsilon(1e-12));
  }
  CHECK(feasible >= 400);
}

}  // namespace epocast::contiguous_split_test
