// Devices of two kinds, for every strategy. Every other device is twice as slow in everything, so that each computation
// takes exactly twice as long there. Then a cluster of equal devices with `stragglers` of slowdown 2 is the same thing
// said in other words, and goes other ways through the code.

#include <set>

#include "tests/conformance/strategy_outcomes.hpp"

namespace epocast::unequal_devices_test {

using namespace epocast::conformance;

namespace {

constexpr double kSlower = 2;  // a power of two: no rounding

bool is_slow(DeviceId device) { return device % 2 == 0; }  // the first worker, for one

const Cluster& unequal_cluster() {
  static const Cluster made = [] {
    Cluster out = cluster();
    for (std::size_t d = 0; d < out.devices.size(); ++d) {
      if (!is_slow(static_cast<DeviceId>(d))) continue;
      Device& device = out.devices[d];
      device.model = "slow";
      device.peak_rate = device.peak_rate / kSlower;
      device.memory_bandwidth = device.memory_bandwidth / kSlower;
    }
    return out;
  }();
  return made;
}

bool says(const Case& c, const std::string& words) { return c.variant.options.find(words) != std::string::npos; }

/// Whether all that takes time is something that a device computes at its own rates, in an order that does not depend
/// on them. Not so: timers, copies by the host, memory that workers share, stages as long as their devices are fast,
/// operations placed by how long they take on them.
bool scales(const Case& c) {
  if ((c.strategy == "operators" || says(c, "name: operators")) && !says(c, "method: round_robin") &&
      !says(c, "method: single"))
    return false;
  for (const char* other : {"cycle:", "copy_rate", "server_rate", "message_overhead", "replicas: auto", "split: time"})
    if (says(c, other)) return false;
  static const StrategyRegistry registry = builtin_strategies();
  const bool is_preset = !registry.find(c.strategy)->preset_of.empty();  // the other has been looked at
  return c.strategy != "hogwild" && c.strategy != "collective_benchmark" && !is_preset;
}

/// Whether workers do the same and wait for each other, so that it does not matter which of them is slow.
bool is_symmetric(const Case& c) {
  static const std::set<std::string> all{"data_parallel", "sharded_data_parallel", "local_sgd",
                                         "layerwise_data_parallel", "two_chunk_data_parallel"};
  return all.contains(c.strategy) ||
         (c.strategy == "parameter_server" && says(c, "mode: sync") && !says(c, "location: "));
}

TrainingStep compile(const Case& c, const Cluster& cluster, bool reversed = false) {
  std::string text = c.variant.options;
  if (c.strategy == "pipeline" && !says(c, "split: ") && !says(c, "first_layers"))
    text.insert(1, text == "{}" ? "split: even" : "split: even, ");
  const ConfigNode options = ConfigNode::load_text(text, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(c.workers));
  std::iota(devices.begin(), devices.end(), 0);
  if (reversed) std::reverse(devices.begin(), devices.end());
  const auto kinds = std::make_shared<const DeviceKinds>(cluster, devices);
  const TraceSource trace(kinds, [&cluster](std::int64_t batch, DeviceId device) {
    WorkloadTrace made = synthetic_trace(batch);
    if (cluster.devices[static_cast<std::size_t>(device)].model == "slow")
      for (LayerTrace& layer : made.layers)
        layer.times = each_pass([&](DeviceTime LayerTimes::*pass) { return layer.times.*pass * kSlower; });
    return made;
  });
  return builtin_strategies()
      .make(c.strategy, options, options)
      ->compile({.cluster = cluster,
                 .workers = devices,
                 .global_batch = 8 * c.workers,
                 .trace = trace,
                 .collective = c.variant.collective,
                 .kinds = kinds});
}

enum Way : std::size_t { kUnequal, kStragglers, kMayFold, kReversed, kFast, kWays };

std::string execute(const Case& c, std::size_t way, SimEngine& engine) {
  ExecutionOptions options{.iterations = kShort, .exact = true, .fold = way == kMayFold};
  if (way == kStragglers)
    for (std::size_t d = 0; d < cluster().devices.size(); ++d)
      options.slowdown.push_back(is_slow(static_cast<DeviceId>(d)) ? kSlower : 1);
  const Cluster& on = way == kStragglers || way == kFast ? cluster() : unequal_cluster();
  return testing::execute_packed(on, engine, {{compile(c, on, way == kReversed).graph, options}});
}

}  // namespace

TEST_CASE("unequal devices are equal devices of which some are slowed down", "[conformance]") {
  std::vector<Case> cases;
  for (const Case& c : all_cases())
    if (scales(c) && c.workers > 1) cases.push_back(c);
  const auto packed =
      testing::on_engines(cluster(), static_cast<int>(cases.size() * kWays), [&](int job, SimEngine& engine) {
        return execute(cases[static_cast<std::size_t>(job) / kWays], static_cast<std::size_t>(job) % kWays, engine);
      });
  int symmetric = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].text());
    std::vector<ExecutionResult> by_way;
    for (std::size_t way = 0; way < kWays; ++way) by_way.push_back(testing::unpack(packed[i * kWays + way]).front());
    const ExecutionResult& unequal = by_way[kUnequal];
    const auto check_same = [&](const ExecutionResult& other) {
      CHECK(unequal.total == Approx(other.total).epsilon(1e-9));
      CHECK(unequal.iteration == Approx(other.iteration).epsilon(1e-9));
      CHECK(unequal.metrics.compute == Approx(other.metrics.compute).epsilon(1e-9));
      CHECK(unequal.metrics.bytes == Approx(other.metrics.bytes).epsilon(1e-9));
    };
    check_same(by_way[kStragglers]);
    check_same(by_way[kMayFold]);
    if (!is_symmetric(cases[i])) continue;
    CHECK_FALSE(by_way[kMayFold].folded);
    // A reversed line of an even number of workers has its slow ones at the other places.
    check_same(by_way[kReversed]);
    CHECK(unequal.total >= by_way[kFast].total * (1 - 1e-9));
    ++symmetric;
  }
  CHECK(symmetric > 50);
  CHECK(cases.size() > 150);
}

}  // namespace epocast::unequal_devices_test
