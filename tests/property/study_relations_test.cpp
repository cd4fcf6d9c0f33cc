// Whole studies, drawn at random over strategies, options, machines, networks and settings, against what must hold
// between two studies whatever their numbers are (metamorphic relations). Nobody knows what the right time of a random
// study is; but it is known how the times of two of them relate:
//
// - Units. If all durations of a study are twice as long and all rates half as large, it is the same study in another
//   unit of time: all times are twice as long, all bytes and counts are the same.
// - Speed. With devices and links twice as fast, while latencies and overheads stay, no step gets slower; and it takes
//   at least half the time, which it would take if latencies and overheads were halved as well (units).
// - Symmetry. Equal workers on a star may stand in any order.
// - Words. A batch of all workers is one of each; workers may be counted or named.
// - Nothing costs nothing. Layers that take no time, hold no parameters and copy no data change nothing.
// - Software. A stack whose mechanisms are all off is not slower.
// - Folding. One worker that stands for all says what all of them say.
// - Extrapolation. A result that calls itself exact is what simulating every iteration gives.
// - Batches. With more samples no step gets faster, nor needs less memory.
// - Epochs. With twice as many an iteration is the same; and in two equal phases all is as in one, twice.
// - Bounds. What is said without simulating a study, to plan, is no more than what it then takes.
// - Intervals. A forecast lies in its own.
// - Conservation. What is sent arrives, on both of the links of a star; what a graph sends follows from its tasks
//   alone; what devices compute adds up to that of so many iterations.
//
// EPOCAST_TEST_STUDIES sets how many studies are drawn, EPOCAST_TEST_STUDY picks the one of a seed.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "experiments/plan/bounds.hpp"
#include "experiments/scenario.hpp"
#include "sim/error.hpp"
#include "tests/property/random_study.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::study_relations_test {

using testing::RandomStudy;
using testing::Variation;

namespace {

enum Form {
  kPlain,
  kSlower,
  kFaster,
  kPermuted,
  kIdleLayers,
  kIdeal,
  kReworded,
  kLarger,
  kLonger,
  kInPhases,
  kUnfolded,
  kSimulated,
  kForms
};

constexpr double kExactly = 1e-9;
constexpr double kTies = 1e-6;   // where who comes first matters a little
constexpr double kTurns = 1e-3;  // where it is another one whenever the clock rounds to twice as much
constexpr double kChaos = 0.01;  // of averages, where there is no period

struct Drawn {
  std::uint64_t seed = 0;
  int attempt = 0;
};

/// Whether layers that cost nothing change something after all: rules that place single passes count them, and where
/// stages do not wait for each other, or replicas are not alike and share a card, who comes first at one date depends
/// on what happens at that date.
bool notices_idle_layers(const RandomStudy& study) {
  if (study.is_described()) return true;
  const auto has = [&](const char* option) { return study.options().find(option) != std::string::npos; };
  const bool in_stages = study.strategy_name() == "pipeline" || study.strategy_name() == "gpipe";
  const bool encodes = has("compression: ") && !has("compression: none");  // between two layers, not after the last
  return (has("method: ") && !has("method: single")) || study.strategy_name() == "pipedream" || has("2bw") ||
         has("threaded") || (in_stages && encodes);
}

/// The same study in one of its forms; empty if it has none.
std::optional<std::string> form_of(RandomStudy& study, Form form) {
  std::string text = study.write();
  if ((form == kPermuted && (!study.is_star() || study.is_irregular())) ||
      (form == kIdleLayers && (!study.has_own_model() || notices_idle_layers(study))))
    return std::nullopt;
  if (form == kIdeal && !study.has_stack()) return std::nullopt;
  if ((form == kSlower || form == kFaster) && study.has_shipped_times()) return std::nullopt;
  if ((form == kLarger || form == kLonger || form == kInPhases) && !study.is_even()) return std::nullopt;
  switch (form) {
    case kSlower: return study.write({.slower = 2});
    case kFaster: return study.write({.faster = 2});
    case kPermuted: return study.write({.permuted = true});
    case kIdleLayers: return study.write({.idle_layers = true});
    case kIdeal: return study.write({.ideal = true});
    case kReworded: return study.write({.reworded = true});
    case kLarger: return study.write({.larger = true});
    case kLonger: return study.write({.longer = true});
    case kInPhases: return study.write({.in_phases = true});
    default: return text;
  }
}

Scenario scenario_of(const std::string& text) { return parse_study(text, "study.yaml").scenarios.front(); }

/// The first draw of a seed that is a valid study. Whatever else there is to say of a draw is said by a ConfigError.
std::string draw(std::uint64_t seed) {
  std::string refusal;
  for (int attempt = 0; attempt < 200; ++attempt) {
    RandomStudy study(seed, attempt);
    const std::string text = study.write();
    try {
      const ScenarioSetup setup = read_scenario(scenario_of(text), builtin_registries());
      for (const PhaseSettings& phase : setup.phases) setup.compile(phase);
      return std::to_string(attempt);
    } catch (const ConfigError& error) {  // such as a pipeline with more stages than workers
      refusal = error.what();
    }
  }
  throw std::runtime_error("seed " + std::to_string(seed) + " has no valid study; the last: " + refusal);
}

std::string run_form(const Drawn& drawn, Form form) {
  RandomStudy study(drawn.seed, drawn.attempt);
  const auto text = form_of(study, form);
  if (!text) return "";
  try {
    RunOptions options;
    options.exact = form == kSimulated;
    options.fold = form != kUnfolded;
    options.interval = form == kPlain && study.has_shipped_stack();
    return serialize(run_scenario(scenario_of(*text), builtin_registries(), options));
  } catch (const std::exception& problem) {
    ScenarioResult failed;
    failed.exit_code = 1;
    failed.error = problem.what();
    return serialize(failed);
  }
}

/// What is wrong with the bytes of a study, phase by phase; empty if nothing is. Throws if it cannot be simulated.
std::string check_bytes(const Drawn& drawn) {
  RandomStudy study(drawn.seed, drawn.attempt);
  const std::string text = study.write();
  const ScenarioSetup setup = read_scenario(scenario_of(text), builtin_registries());
  SimEngine engine(setup.cluster, setup.network);
  std::string wrong;
  const auto near = [](double a, double b) { return std::abs(a - b) <= kExactly * std::max(std::abs(a), std::abs(b)); };
  for (const PhaseSettings& phase : setup.phases) {
    const TrainingStep step = setup.compile(phase);
    const ExecutionResult result =
        execute(step.graph, setup.cluster, engine, {.iterations = 20, .exact = true, .fold = false});
    const double sent = testing::sum(result.totals.sent);
    if (!near(sent, testing::sum(result.totals.received))) wrong += "not all that was sent arrived; ";
    for (std::size_t d = 0; d < result.totals.activity.size(); ++d)
      if (!near(result.totals.activity[d].total(), result.totals.makespan))
        wrong += fmt::format("the time of device {} does not add up; ", d);
    // However iterations overlap, each of them computes the same as those of the period.
    const bool quorum = std::ranges::any_of(step.graph.tasks(), [](const Task& task) { return task.quorum > 0; });
    double computed = 0;
    for (const DeviceId worker : phase.workers)
      computed += result.totals.activity[static_cast<std::size_t>(worker)].compute() /
                  (20 * static_cast<double>(phase.workers.size()));
    if (result.period && !quorum && !near(computed, result.metrics.compute))
      wrong += fmt::format("an iteration computes {} s instead of {} s; ", result.metrics.compute, computed);
    const bool by_nodes = std::count(result.algorithms.begin(), result.algorithms.end(),
                                     CollectiveAlgorithm::hierarchical) > 0;  // depends on the machine
    if (!by_nodes && !study.measures_collectives() && !testing::fuses_what_it_chooses(step.graph)) {
      const double expected = 20 * testing::sum(testing::bytes_sent_per_iteration(
                                       step.graph, setup.cluster.devices.size(), result.algorithms));
      if (!near(sent, expected)) wrong += fmt::format("sent {} B instead of {} B; ", sent, expected);
    }
    // Of a star each message loads the sender's link up and the receiver's link down.
    if (study.is_star() && !study.measures_collectives() && !near(testing::sum(result.totals.on_link), 2 * sent))
      wrong += fmt::format("links carried {} B of {} B; ", testing::sum(result.totals.on_link), 2 * sent);
  }
  return wrong;
}

/// What is said of a study without simulating it.
std::string cheap(const Drawn& drawn) {
  RandomStudy study(drawn.seed, drawn.attempt);
  const ScenarioSetup setup = read_scenario(scenario_of(study.write()), builtin_registries());
  SimEngine engine(setup.cluster, setup.network);
  CheapBounds bounds = cheap_bounds(setup, &engine);
  bounds.least.fits_memory = bounds.fits;
  return serialize(bounds.least);
}

/// Where a device serves whoever comes first, and others wait for some more than for others, something that comes
/// earlier can make everybody later (Graham 1969: anomalies of list scheduling): speed then promises nothing.
bool may_have_anomalies(const RandomStudy& study) {
  static const std::set<std::string> lock_step{"single",
                                               "data_parallel",
                                               "sharded_data_parallel",
                                               "local_sgd",
                                               "layerwise_data_parallel",
                                               "two_chunk_data_parallel",
                                               "collective_benchmark"};
  return !lock_step.contains(study.strategy_name()) || study.chooses_algorithm() ||
         std::ranges::any_of(std::array{"priority", "cycle", "at_once"},
                             [&](const char* option) { return study.options().find(option) != std::string::npos; });
}

/// Collects what does not hold.
class Relation {
 public:
  Relation(std::string name, std::vector<std::string>& violations) : name_(std::move(name)), out_(violations) {}

  void equal(const char* what, double a, double b, double tolerance, double scale = 0) {
    if (std::abs(a - b) > tolerance * std::max({std::abs(a), std::abs(b), scale})) add(what, a, b, "is not");
  }
  void at_most(const char* what, double a, double b, double scale = 0, double tolerance = kExactly) {
    if (a - b > tolerance * std::max({std::abs(a), std::abs(b), scale})) add(what, a, b, "exceeds");
  }
  /// How far two studies may differ.
  struct Allowed {
    double steady = kExactly;  ///< of what is the same in every period
    double beginning = 0;      ///< of what comes before it
    bool waits_alike = true;   ///< chaos comes back to its averages, but not to who waits for what
  };
  /// All columns, with times as the other's, `slower` times as long.
  void same(const ScenarioResult& a, const ScenarioResult& b, double slower, const Allowed& allowed) {
    const double time = slower * b.iteration_s, tolerance = allowed.steady;
    equal("iteration_s", a.iteration_s, time, tolerance);
    equal("total_s", a.total_s, slower * b.total_s, std::max(tolerance, allowed.beginning));
    if (allowed.waits_alike) {
      equal("compute_s", a.compute_s, slower * b.compute_s, tolerance, time);
      equal("comm_s", a.comm_s, slower * b.comm_s, tolerance, time);
      equal("exposed_comm_s", a.exposed_comm_s, slower * b.exposed_comm_s, tolerance, time);
    }
    equal("comm_bytes_per_epoch", a.comm_bytes_per_epoch, b.comm_bytes_per_epoch, kExactly);
    equal("max_link_utilization", a.max_link_utilization, b.max_link_utilization, tolerance);
    equal("peak_memory_bytes", a.peak_memory_bytes.value_or(0), b.peak_memory_bytes.value_or(0), kExactly);
    // Counted over what was simulated, its beginning included: that depends on when rounding lets a period be seen.
    if (a.iterations_simulated == b.iterations_simulated)
      equal("mean_staleness", a.mean_staleness.value_or(-1), b.mean_staleness.value_or(-1), tolerance, 1);
    equal("bound_s", a.bound_s.value_or(0), slower * b.bound_s.value_or(0), kExactly);
    equal("speedup", a.speedup.value_or(0), b.speedup.value_or(0), tolerance);
    const double whole = std::max(tolerance, allowed.beginning);
    equal("goodput", a.goodput.value_or(1), b.goodput.value_or(1), whole);
    equal("cost", a.cost.value_or(0), b.cost.value_or(0), whole);
    equal("energy_j", a.energy_j.value_or(0), slower * b.energy_j.value_or(0), allowed.waits_alike ? whole : kChaos);
    equal("co2_kg", a.co2_kg.value_or(0), slower * b.co2_kg.value_or(0), allowed.waits_alike ? whole : kChaos);
  }

 private:
  void add(const char* what, double a, double b, const char* relation) {
    out_.push_back(fmt::format("{}: {} {:.12g} {} {:.12g}", name_, what, a, relation, b));
  }
  std::string name_;
  std::vector<std::string>& out_;
};

void check_alone(const ScenarioResult& r, std::vector<std::string>& violations) {
  Relation sane("bounds", violations);
  // Without a period, averages are over a window that may cut an iteration.
  const bool measured = r.exact && r.iteration_ci95 == 0;
  for (const double value : {r.compute_s, r.comm_s, r.exposed_comm_s, r.comm_bytes_per_epoch, r.max_link_utilization})
    sane.at_most("0", 0, value);
  sane.at_most("exposed_comm_s", r.exposed_comm_s, r.comm_s, r.iteration_s);
  // SimGrid lets a flow end 1e-12 s early, and an iteration may have ten one after the other, a long one a thousand.
  const double early = std::max(1e-8, 1e-11 / r.iteration_s);
  if (measured) {  // a result that contradicts itself, as closed forms beside other traffic may, does not say exact
    sane.at_most("max_link_utilization", r.max_link_utilization, 1, 0, early);
    sane.at_most("compute_s", r.compute_s, r.iteration_s);
    sane.at_most("comm_s", r.comm_s, r.iteration_s);
    if (r.bound_s) sane.at_most("bound_s", *r.bound_s, r.iteration_s, 0, early);
  }
  if (r.max_staleness) sane.at_most("mean_staleness", *r.mean_staleness, static_cast<double>(*r.max_staleness));
}

void check_least(const ScenarioResult& least, const ScenarioResult& r, std::vector<std::string>& violations) {
  Relation bounds("without simulating", violations);
  const double doubted = kExactly + (r.exact ? 0 : 2 * r.iteration_ci95 / r.iteration_s);
  bounds.at_most("total_s", least.total_s, r.total_s, 0, doubted);
  bounds.at_most("cost", least.cost.value_or(0), r.cost.value_or(0), 0, doubted);
  bounds.at_most("energy_j", least.energy_j.value_or(0), r.energy_j.value_or(0), 0, doubted);
  if (r.fits_memory && least.fits_memory != r.fits_memory) violations.push_back("without simulating: fits is not");
  if (!r.iteration_low_s) return;
  Relation interval("interval", violations);
  interval.at_most("its low end", *r.iteration_low_s, r.iteration_s);
  interval.at_most("iteration_s", r.iteration_s, *r.iteration_high_s);
}

/// Half of the 95 % interval of an iteration, of which noise makes an estimate; relative.
double doubt(const ScenarioResult& r) { return r.iteration_ci95 / r.iteration_s; }

/// What does not hold for one study.
std::vector<std::string> violations_of(const RandomStudy& study, const std::vector<std::optional<ScenarioResult>>& r,
                                       const ScenarioResult& least, const std::string& bytes) {
  std::vector<std::string> out;
  if (!bytes.empty()) out.push_back("conservation: " + bytes);
  for (const auto& result : r)
    if (result && !result->error.empty()) out.push_back("fails: " + result->error);
  if (!out.empty()) return out;
  const ScenarioResult& plain = *r[kPlain];
  check_alone(plain, out);
  check_least(least, plain, out);
  // Of a loop without a period only averages are sound: it is chaotic, or noise makes an estimate of it.
  const bool periodic = plain.exact && plain.iterations_simulated < r[kSimulated]->iterations_simulated;
  // Nor are these better than an iteration more or less in what is averaged over.
  const double averaged = std::max(kChaos, 1 / static_cast<double>(plain.iterations_simulated));
  const double similar = periodic ? kExactly : averaged;
  // SimGrid's tolerance is in seconds: who comes first may depend on them where workers do not wait for each other.
  if (r[kSlower] && !study.asks_library())
    Relation("units", out)
        .same(*r[kSlower], plain, 2,
              {periodic ? 1e-8 : averaged, may_have_anomalies(study) ? kChaos : 0, /*waits_alike=*/periodic});
  if (r[kPermuted]) Relation("symmetry", out).same(*r[kPermuted], plain, 1, {similar});
  if (r[kIdleLayers]) {  // which draw noise as well, so that others get other draws
    const double drawn = 2 * (doubt(*r[kIdleLayers]) + doubt(plain));
    Relation("idle layers", out).same(*r[kIdleLayers], plain, 1, {similar + drawn});
  }
  if (r[kLonger] && periodic && r[kLonger]->exact) {
    Relation longer("twice as long", out);
    longer.equal("iteration_s", r[kLonger]->iteration_s, plain.iteration_s, kExactly);
    longer.equal("comm_bytes_per_epoch", r[kLonger]->comm_bytes_per_epoch, plain.comm_bytes_per_epoch, kExactly);
  }
  if (r[kInPhases] && periodic && !study.is_irregular() && !plain.goodput) {
    Relation phases("in phases", out);
    const ScenarioResult& twice = *r[kInPhases];
    phases.equal("iteration_s", twice.iteration_s, plain.iteration_s, kExactly);
    phases.equal("total_s", twice.total_s, 2 * plain.total_s, kExactly);
    phases.equal("compute_s", twice.compute_s, plain.compute_s, kExactly);
    phases.equal("comm_s", twice.comm_s, plain.comm_s, kExactly);
    phases.equal("exposed_comm_s", twice.exposed_comm_s, plain.exposed_comm_s, kExactly, plain.iteration_s);
    phases.equal("comm_bytes_per_epoch", twice.comm_bytes_per_epoch, plain.comm_bytes_per_epoch, kExactly);
    phases.equal("peak_memory_bytes", twice.peak_memory_bytes.value_or(0), plain.peak_memory_bytes.value_or(0), 0);
    phases.equal("max_link_utilization", twice.max_link_utilization, plain.max_link_utilization, kExactly);
    phases.equal("speedup", twice.speedup.value_or(0), plain.speedup.value_or(0), kExactly);
    phases.equal("efficiency", twice.efficiency.value_or(0), plain.efficiency.value_or(0), kExactly);
    phases.equal("cost", twice.cost.value_or(0), 2 * plain.cost.value_or(0), kExactly);
    phases.equal("energy_j", twice.energy_j.value_or(0), 2 * plain.energy_j.value_or(0), kExactly);
  }
  Relation("other words", out).same(*r[kReworded], plain, 1, {kExactly});
  Relation("folding", out).same(*r[kUnfolded], plain, 1, {similar});
  // Who comes first of two at one date depends on how the clock rounds that date, which is not the same in each period.
  const bool serve_each_other = study.options().find("device_servers") != std::string::npos;
  const double ties = serve_each_other ? kTurns : may_have_anomalies(study) ? kTies : kExactly;
  if (plain.exact) Relation("extrapolation", out).equal("total_s", r[kSimulated]->total_s, plain.total_s, ties);
  if (!may_have_anomalies(study) && !study.is_irregular() && !study.is_anchored()) {
    if (r[kFaster]) {
      Relation speed("speed", out);
      speed.at_most("iteration_s", r[kFaster]->iteration_s, plain.iteration_s);
      speed.at_most("half of iteration_s", plain.iteration_s / 2, r[kFaster]->iteration_s);
    }
    if (r[kLarger] && !study.has_discrepancy()) {
      Relation larger("larger batches", out);
      larger.at_most("iteration_s", plain.iteration_s, r[kLarger]->iteration_s);
      larger.at_most("peak_memory_bytes", plain.peak_memory_bytes.value_or(0),
                     r[kLarger]->peak_memory_bytes.value_or(0));
    }
    if (r[kIdeal]) Relation("software", out).at_most("iteration_s", r[kIdeal]->iteration_s, plain.iteration_s);
  }
  return out;
}

void check_studies(int count) {
  std::vector<Drawn> drawn;
  if (const char* one = std::getenv("EPOCAST_TEST_STUDY"))
    drawn.push_back({static_cast<std::uint64_t>(std::atoll(one))});
  else
    for (int s = 1; s <= count; ++s) drawn.push_back({static_cast<std::uint64_t>(s)});
  const auto attempts = testing::in_children(static_cast<int>(drawn.size()),
                                             [&](int i) { return draw(drawn[static_cast<std::size_t>(i)].seed); });
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i].attempt = std::stoi(attempts[i]);

  constexpr int kBytes = kForms, kCheap = kForms + 1, kJobs = kForms + 2;
  const auto results = testing::in_children(static_cast<int>(drawn.size()) * kJobs, [&](int job) {
    const Drawn& of = drawn[static_cast<std::size_t>(job / kJobs)];
    const int form = job % kJobs;
    if (form < kForms) return run_form(of, static_cast<Form>(form));
    try {
      return form == kCheap ? cheap(of) : check_bytes(of);
    } catch (const std::exception& problem) {  // of one study, of which the message shall tell the seed
      return std::string(problem.what());
    }
  });

  std::set<std::string> strategies;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    RandomStudy study(drawn[i].seed, drawn[i].attempt);
    const std::string text = study.write();
    strategies.insert(study.strategy_name());
    std::vector<std::optional<ScenarioResult>> forms(kForms);
    for (std::size_t f = 0; f < kForms; ++f)
      if (const std::string& packed = results[i * kJobs + f]; !packed.empty()) forms[f] = deserialize(packed);
    const std::vector<std::string> violations =
        violations_of(study, forms, deserialize(results[i * kJobs + kCheap]), results[i * kJobs + kBytes]);
    std::string all;
    for (const std::string& violation : violations) all += violation + "\n";
    INFO("EPOCAST_TEST_STUDY=" << drawn[i].seed << "\n" << text << all);
    CHECK(violations.empty());
  }
  if (drawn.size() >= 40) {  // or else little has been tested
    CHECK(strategies.size() >= 12);
    CHECK(strategies.contains("composition"));
  }
}

}  // namespace

TEST_CASE("random studies keep what must hold between them", "[property][studies]") { check_studies(40); }

TEST_CASE("a thousand random studies keep what must hold between them", "[property][long]") {
  const char* count = std::getenv("EPOCAST_TEST_STUDIES");
  check_studies(count != nullptr ? std::atoi(count) : 1000);
}

}  // namespace epocast::study_relations_test
