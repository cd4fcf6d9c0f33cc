// What must hold for every strategy, whatever it does: it is a function from options to a valid graph, and simulated
// time obeys conservation laws and lower bounds. One suite for all; strategy_variants.hpp says which options are tried.
//
// Tolerances: 1e-9 relative is what extrapolation and folding promise. Sums of many doubles are compared to 1e-9 as
// well.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/least_time.hpp"
#include "tests/conformance/strategy_outcomes.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/one_pace.hpp"

namespace epocast::strategy_test {

using namespace epocast::conformance;
using testing::sum;

namespace {

double relative_difference(double a, double b) {
  return a == b ? 0 : std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

/// Without a barrier workers need not settle: several servers make quasi-periodic orders, and a worker on its server's
/// own host is faster than the others for ever. Then all iterations are simulated, or an estimate says that it is one.
bool may_be_aperiodic(const Case& c) {
  static const std::set<std::string> kAsynchronous{"downpour", "agn",    "adag",           "async_momentum",
                                                   "aeasgd",   "gossip", "async_local_sgd"};
  const std::string& options = c.variant.options;
  return c.workers > 1 && (kAsynchronous.contains(c.strategy) || options.find("mode: async") != std::string::npos ||
                           options.find("mode: stale") != std::string::npos);
}

/// Who drops what comes late has no cycle that must be gone through.
bool bounded(const Case& c) { return c.variant.options.find("mode: backup") == std::string::npos; }

/// Iterations that a run may lack of a multiple of its bound. The bound knows the order in which queues serve in the
/// steady state; the first iteration, for which everything is ready at once, and the last, which no other follows, may
/// be served in another order. A cycle through such an order then lacks as many iterations as it spans.
double iterations_cut(const CyclicTaskGraph& graph, const CycleBound& bound) {
  const bool ordered = std::all_of(graph.queues().begin(), graph.queues().end(),
                                   [](const Queue& queue) { return queue.discipline == Discipline::program_order; });
  return ordered ? 0 : std::accumulate(bound.lags.begin(), bound.lags.end(), 0);
}

/// Where several batches are under way, or operations are placed, and whoever comes first is served first, a message
/// that comes earlier can make a device begin with what others wait for less (Graham 1969: anomalies of list
/// scheduling).
bool may_have_anomalies(const Case& c) {
  return c.strategy == "operators" || c.variant.options.find("name: operators") != std::string::npos ||
         c.variant.options.find("in_flight: 3") != std::string::npos;
}

bool computes(const CyclicTaskGraph& graph) {
  return std::any_of(graph.tasks().begin(), graph.tasks().end(), [](const Task& task) {
    const auto* compute = std::get_if<Compute>(&task.work);
    return compute != nullptr && compute->duration.any();
  });
}

/// Iteration and total of kLong iterations, as text: with and without the network.
std::string least_times(const Case& c, SimEngine& engine) {
  const TrainingStep step = c.compile(cluster());
  std::ostringstream out;
  out.precision(17);
  for (SimEngine* const used : {static_cast<SimEngine*>(nullptr), &engine}) {
    const LeastTime least = least_time(step.graph, cluster(), used, {}, true);
    out << least.iteration() << ' ' << least.total(kLong) << ' ';
  }
  return out.str();
}

}  // namespace

TEST_CASE("every registered strategy and every word of its options is in the table of variants", "[conformance]") {
  const auto table = strategy_variants();
  const StrategyRegistry registry = builtin_strategies();
  for (const EntryInfo& info : registry.infos()) {
    INFO("strategy " << info.name << ": add variants to tests/conformance/strategy_variants.hpp");
    REQUIRE(table.contains(info.name));
    if (!info.preset_of.empty()) continue;  // its words are the other's
    for (const ParameterInfo& parameter : info.parameters) {
      if (parameter.range.find(" | ") == std::string::npos) continue;
      std::stringstream words(parameter.range);
      for (std::string word; words >> word;) {
        if (word == "|") continue;
        INFO("option " << parameter.name << ": " << word);
        const auto& variants = table.at(info.name);
        CHECK(std::any_of(variants.begin(), variants.end(), [&](const Variant& v) {
          const std::string text = parameter.name + ": " + word;
          const std::size_t at = v.options.find(text);
          return at != std::string::npos && (v.options[at + text.size()] == ',' || v.options[at + text.size()] == '}');
        }));
      }
    }
  }
  for (const auto& [name, variants] : table) CHECK(registry.find(name) != nullptr);
}

TEST_CASE("numbers of workers that a strategy cannot use are errors in the options", "[conformance]") {
  for (const auto& [strategy, variants] : strategy_variants())
    for (const Variant& variant : variants)
      for (const int workers : {variant.min_workers - 1, variant.max_workers + 1})
        if (workers >= 1 && workers <= 64) {
          INFO(Case({strategy, variant, workers}).text());
          CHECK_THROWS_AS(Case({strategy, variant, workers}).compile(cluster()), ConfigError);
        }
}

TEST_CASE("no task runs ahead of a step", "[conformance]") {
  // What waits for nothing that the rest does would run as often as it can. On hosts of their own and on one node.
  for (const Case& c : all_cases()) {
    INFO(c.text());
    Cluster one_node = cluster();
    for (int d = 0; d < c.workers; ++d) one_node.devices[static_cast<std::size_t>(d)].node = "a";
    for (const Cluster* where : {&cluster(), static_cast<const Cluster*>(&one_node)})
      CHECK(testing::tasks_driven_by_nobody(c.compile(*where).graph) == std::vector<std::string>{});
  }
}

TEST_CASE("graphs are valid and need memory", "[conformance]") {
  for (const Case& c : all_cases()) {
    INFO(c.text());
    const TrainingStep step = c.compile(cluster());
    CHECK_NOTHROW(step.graph.validate(cluster()));
    CHECK(step.steps >= 1);
    CHECK(step.memory.empty() == (c.strategy == "collective_benchmark"));  // which has no model
    for (const DeviceMemory& memory : step.memory) {
      CHECK(!memory.holder.empty());
      CHECK(!memory.devices.empty());
      CHECK(memory.use.total().value > 0);
    }
  }
}

TEST_CASE("runs that simulate all their traffic raise no doubts", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    if (o.is.variant.collective.level == CollectiveLevel::closed_form) continue;
    INFO(o.is.text());
    for (const ExecutionResult& result : o.results) {
      CHECK_FALSE(contradicts_itself(result));
      CHECK(result.doubts.empty());
    }
  }
}

TEST_CASE("the same run gives the same bits", "[conformance]") {
  // Everything that a run returns, its timeline included.
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    CHECK((o.packed[kRecorded] == o.packed[kRecordedAgain]));
    CHECK((o.packed[kFolded] == o.packed[kFoldedAgain]));
    CHECK((o.packed[kNoisy] == o.packed[kNoisyAgain]));
  }
}

TEST_CASE("extrapolation gives what simulating every iteration gives", "[conformance]") {
  double worst = 0;
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    const ExecutionResult& exact = o.results[kExact];
    const ExecutionResult& extrapolated = o.results[kExtrapolated];
    CHECK(exact.iterations_simulated == kLong);
    CHECK(extrapolated.exact == extrapolated.doubts.empty());
    CHECK((extrapolated.iterations_simulated < kLong / 2 || may_be_aperiodic(o.is)));
    const double difference = relative_difference(exact.total, extrapolated.total);
    CHECK(difference < 1e-9);
    worst = std::max(worst, difference);
    CHECK(relative_difference(exact.iteration, extrapolated.iteration) < 1e-9);
    // The pace is that of the whole run but for its transient.
    CHECK(exact.iteration == Approx(exact.total / kLong).epsilon(0.1));
  }
  if (std::getenv("EPOCAST_TEST_NUMBERS")) WARN("worst relative error of extrapolation: " << worst);
}

TEST_CASE("folded runs give what unfolded runs give", "[conformance]") {
  std::set<std::string> folding;
  double worst = 0;
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    const ExecutionResult& folded = o.results[kFolded];
    const ExecutionResult& unfolded = o.results[kExtrapolated];
    REQUIRE_FALSE(unfolded.folded);
    if (folded.folded) folding.insert(o.is.strategy);
    worst = std::max(worst, relative_difference(folded.total, unfolded.total));
    CHECK(relative_difference(folded.total, unfolded.total) < 1e-9);
    CHECK(relative_difference(folded.iteration, unfolded.iteration) < 1e-9);
    CHECK(relative_difference(folded.metrics.compute, unfolded.metrics.compute) < 1e-9);
    CHECK(relative_difference(folded.metrics.communication, unfolded.metrics.communication) < 1e-9);
    CHECK(folded.metrics.exposed_communication == Approx(unfolded.metrics.exposed_communication).margin(1e-9));
    CHECK(relative_difference(folded.metrics.bytes, unfolded.metrics.bytes) < 1e-9);
    CHECK(relative_difference(folded.metrics.max_link_utilization, unfolded.metrics.max_link_utilization) < 1e-9);
    REQUIRE(folded.bound.has_value() == bounded(o.is));
    if (folded.bound) CHECK(relative_difference(folded.bound->seconds, unfolded.bound->seconds) < 1e-9);
  }
  // Ranks of a collective on a star are interchangeable; clients of a server are not, they are served in an order.
  CHECK(folding.contains("data_parallel"));
  CHECK(folding.contains("collective_benchmark"));
  CHECK_FALSE(folding.contains("single"));
  CHECK_FALSE(folding.contains("parameter_server"));
  if (std::getenv("EPOCAST_TEST_NUMBERS")) {
    std::string names;
    for (const std::string& name : folding) names += " " + name;
    WARN("strategies that fold:" << names << "; worst relative difference " << worst);
  }
}

TEST_CASE("bytes are conserved from the graph to the links", "[conformance]") {
  // On this star every message crosses one uplink and one downlink.
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    const auto expected =
        testing::bytes_sent_per_iteration(o.step.graph, cluster().devices.size(), o.results.front().algorithms);
    for (const RunIndex run : {kRecorded, kExact, kFolded, kNoisy}) {
      const ExecutionResult& result = o.results[run];
      const auto iterations = static_cast<double>(result.iterations_simulated);
      CHECK(relative_difference(sum(result.totals.received), sum(result.totals.sent)) < 1e-9);
      CHECK(relative_difference(sum(result.totals.on_link), 2 * sum(result.totals.sent)) < 1e-9);
      CHECK(relative_difference(result.metrics.bytes, sum(result.totals.sent) / iterations) < 1e-9);
      if (testing::fuses_what_it_chooses(o.step.graph)) continue;
      for (std::size_t d = 0; d < expected.size(); ++d)
        REQUIRE(result.totals.sent[d] == Approx(expected[d] * iterations).epsilon(1e-9));
    }
  }
}

TEST_CASE("idle and busy time of every device add up to the makespan", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    for (const ExecutionResult& result : o.results)
      for (const ActivityTimes& times : result.totals.activity)
        REQUIRE(relative_difference(times.total(), result.totals.makespan) < 1e-9);
  }
}

TEST_CASE("no run beats its bound", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    for (const RunIndex run : {kRecorded, kExact, kExtrapolated, kFolded, kOne, kTwo, kMore, kFaster}) {
      const ExecutionResult& result = o.results[run];
      INFO("run " << run);
      REQUIRE(result.bound.has_value() == bounded(o.is));
      if (!result.bound) continue;
      CHECK(result.bound->seconds > 0);
      CHECK(result.iteration >= result.bound->seconds - 1e-9);
      const double whole =
          static_cast<double>(result.iterations_simulated) - iterations_cut(o.step.graph, *result.bound);
      // Messages are rounded to 1/1024 B, which is up to 1e-8 of the small ones here.
      CHECK(result.totals.makespan >= result.bound->seconds * whole * (1 - 1e-8));
    }
  }
}

TEST_CASE("metrics are numbers that mean something", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    for (const ExecutionResult& result : o.results) {
      const StepMetrics& m = result.metrics;
      for (const double value :
           {result.total, result.iteration, result.iteration_ci95, m.compute, m.communication, m.exposed_communication,
            m.bytes, m.max_link_utilization, m.mean_staleness.value_or(0)})
        CHECK((std::isfinite(value) && value >= -1e-12));
      CHECK(m.max_link_utilization <= 1 + 1e-9);
      CHECK(m.exposed_communication <= m.communication + 1e-12);
      // Estimates of the two come from different iterations.
      CHECK(m.compute <= result.iteration * (result.period ? 1 + 1e-9 : 1.1) + 1e-12);
      CHECK((m.overlap_ratio() >= -1e-9 && m.overlap_ratio() <= 1 + 1e-9));
      CHECK(m.mean_staleness.value_or(0) <= static_cast<double>(m.max_staleness.value_or(0)));
    }
  }
}

TEST_CASE("more iterations take longer", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    const auto& r = o.results;
    const std::vector<double> totals{r[kOne].total, r[kTwo].total, r[kRecorded].total, r[kMore].total,
                                     r[kFolded].total};
    CHECK(std::adjacent_find(totals.begin(), totals.end(), std::greater_equal<>()) == totals.end());
  }
}

TEST_CASE("links twice as fast slow nothing down", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    if (may_have_anomalies(o.is)) continue;
    INFO(o.is.text());
    CHECK(o.results[kFaster].total <= o.results[kExtrapolated].total * (1 + 1e-9));
  }
}

TEST_CASE("noise depends on its seed only", "[conformance]") {
  for (const Outcome& o : outcomes()) {
    INFO(o.is.text());
    const auto& r = o.results;
    CHECK_FALSE(r[kNoisy].bound);
    if (computes(o.step.graph)) {
      CHECK(relative_difference(r[kNoisy].total, r[kNoisyOther].total) > 1e-6);
      CHECK(relative_difference(r[kNoisy].total, r[kRecorded].total) > 1e-6);
    } else {
      CHECK(relative_difference(r[kNoisy].total, r[kRecorded].total) < 1e-9);  // nothing to vary
    }
  }
}

TEST_CASE("no run is shorter than its graph says without running it", "[conformance]") {
  const std::vector<Outcome>& all = outcomes();
  const auto texts = testing::on_engines(cluster(), static_cast<int>(all.size()), [&](int i, SimEngine& engine) {
    return least_times(all[static_cast<std::size_t>(i)].is, engine);
  });
  double tightest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is.variant.options.find("mode: backup") != std::string::npos) continue;  // leaves out who is late
    double alone = 0, alone_total = 0, iteration = 0, total = 0;
    std::istringstream(texts[i]) >> alone >> alone_total >> iteration >> total;
    CAPTURE(all[i].is.text());
    // The network adds to it (totals count whole times around a cycle, which may be another).
    CHECK(iteration >= alone * (1 - 1e-9));
    const double sure = all[i].step.graph.ranks_are_independent() ? 0.99 : 1 - 1e-9;
    for (const RunIndex run : {kExact, kExtrapolated, kFolded}) {
      CHECK(all[i].results[run].iteration >= sure * iteration);
      CHECK(all[i].results[run].total >= sure * total);
    }
    tightest = std::max(tightest, iteration / all[i].results[kExact].iteration);
  }
  CHECK(tightest > 0.99);  // of some strategies it is all there is to say
}

}  // namespace epocast::strategy_test
