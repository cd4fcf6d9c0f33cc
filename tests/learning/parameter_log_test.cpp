// Who does what to parameters, and in which order: against hand-made timelines, the executor's own counts of versions,
// and longer simulations.
#include <catch2/catch.hpp>

#include <map>

#include <fmt/format.h>

#include "tests/support/in_child.hpp"
#include "tests/support/recorded_log.hpp"

namespace epocast::parameter_log_test {

using testing::record;
using Kind = ParameterEvent::Kind;

namespace {

/// Versions between the read that a commit belongs to and the commit, over the pieces of one server: as the executor
/// counts them, from the second iteration on.
double mean_staleness(const ParameterLog& log) {
  std::map<std::int32_t, std::int64_t> version;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> read;
  double sum = 0, writes = 0;
  for (const ParameterEvent& event : log.events) {
    if (event.piece > 0) continue;
    if (event.kind == Kind::read) read[{event.rank, event.piece}] = version[event.piece];
    if (event.kind != Kind::commit) continue;
    if (event.iteration > 0) {
      sum += static_cast<double>(version[event.piece] - read[{event.rank, event.piece}]);
      ++writes;
    }
    ++version[event.piece];
  }
  return sum / writes;
}

}  // namespace

TEST_CASE("one worker and one server: pull, compute, commit, in this order", "[log]") {
  const ParameterLog log = record({.options = "{mode: async}", .iterations = 2}).log;
  const std::vector<Kind> expected{Kind::read, Kind::gradient, Kind::commit, Kind::read, Kind::gradient, Kind::commit};
  REQUIRE(log.events.size() == expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) {
    CHECK(log.events[n].kind == expected[n]);
    CHECK(log.events[n].iteration == static_cast<std::int64_t>(n / 3));
    CHECK((n == 0 || log.events[n].date >= log.events[n - 1].date));
  }
  CHECK(log.workers == 1);
  CHECK(log.pieces.size() == 1);
}

TEST_CASE("staleness of the log is what the executor counts", "[log]") {
  const std::string mode = GENERATE("async", "stale", "sync");
  const double cv = GENERATE(0.0, 0.3);
  const auto recorded =
      record({.options = "{mode: " + mode + "}", .workers = 5, .iterations = 40, .noise = {.compute_cv = cv}});
  if (mode == "sync") {
    CHECK(*recorded.result.metrics.mean_staleness == 0);
    return;
  }
  CHECK(mean_staleness(recorded.log) == Approx(*recorded.result.metrics.mean_staleness).epsilon(1e-12));
}

TEST_CASE("equal workers that do not wait are n - 1 versions behind", "[log]") {
  const int n = GENERATE(1, 2, 4, 8, 16);
  const ParameterLog log = record({.options = "{mode: async}", .workers = n, .iterations = 60}).log;
  // The first round has staleness 0, 1, .. n - 1 and is not counted by mean_staleness().
  CHECK(mean_staleness(log) == Approx(n - 1));
}

TEST_CASE("a periodic log goes on as a longer simulation does", "[log]") {
  const std::string strategy =
      GENERATE("parameter_server", "downpour", "data_parallel", "local_sgd", "easgd", "gossip");
  CAPTURE(strategy);
  ParameterLog shorter = record({.strategy = strategy, .workers = 4, .iterations = 12}).log;
  const ParameterLog longer = record({.strategy = strategy, .workers = 4, .iterations = 40}).log;
  REQUIRE(continue_by_period(shorter, 1, 40));
  ParameterLogCursor cursor(shorter);
  std::size_t compared = 0;
  for (const ParameterEvent& expected : longer.events) {
    // At the end of training workers stop one by one, which the period knows nothing of.
    if (expected.iteration >= 38) break;
    const auto found = cursor.next();
    REQUIRE(found);
    CHECK(found->kind == expected.kind);
    CHECK(found->rank == expected.rank);
    CHECK(found->iteration == expected.iteration);
    CHECK(found->date == Approx(expected.date).epsilon(1e-9));
    ++compared;
  }
  CHECK(compared > 4 * 30);
}

TEST_CASE("a log written while the run goes on, most of it to a file, is that of its timeline", "[log]") {
  constexpr std::int64_t kIterations = 900;
  const NoiseModel noise{.compute_cv = 0.5};
  for (const std::string options : {"{mode: async}", "{mode: sync}"}) {
    CAPTURE(options);
    const testing::Recorded recorded =
        record({.options = options, .workers = 3, .iterations = kIterations, .noise = noise});
    const auto text_of = [](const ParameterLog& log) {
      std::string out;
      ParameterLogCursor cursor(log);
      while (const std::optional<ParameterEvent> e = cursor.next())
        out += fmt::format("{} {} {} {} {}\n", e->date, e->iteration, to_string(e->kind), e->rank, e->piece);
      return out;
    };
    const testing::Star star(4, 1e9, 1e-6);
    const std::string written = testing::in_child([&] {
      SimEngine engine(star.cluster());
      ParameterLogWriter writer(recorded.step.graph, recorded.step.steps, kIterations, 100);
      execute(recorded.step.graph, star.cluster(), engine,
              {.iterations = kIterations, .exact = true, .fold = false, .noise = noise, .intervals = &writer});
      const ParameterLog log = writer.finish();
      if (log.events.size() != 100 || !log.later || log.later->size() < 4096) return std::string("not in a file");
      if (!log.has(Kind::gradient) || log.has(Kind::merge)) return std::string("kinds are not known");
      ParameterLog periodic = log;
      if (continue_by_period(periodic, 1, 10 * kIterations)) return std::string("continued");
      return text_of(log);
    });
    CHECK(written == text_of(recorded.log));
  }
}

TEST_CASE("a log that has no room says what helps", "[log]") {
  const std::string problem = testing::in_child([] {
    setenv("TMPDIR", "/nowhere", 1);
    try {
      const ParameterEventFile file;
    } catch (const SimulationError& error) {
      return std::string(error.what());
    }
    return std::string("there is room");
  });
  CHECK_THAT(problem, Catch::Contains("cannot be made") && Catch::Contains("set TMPDIR"));
}

TEST_CASE("a period that is none is refused", "[log]") {
  ParameterLog log =
      record({.options = "{mode: async}", .workers = 3, .iterations = 12, .noise = {.compute_cv = 0.5}}).log;
  CHECK_FALSE(continue_by_period(log, 1, 100));
  CHECK(log.iterations == 12);
}

TEST_CASE("layers are pieces, with their shares of the bytes", "[log]") {
  const ParameterLog log =
      record({.options = "{mode: async}", .workers = 2, .trace = TraceSource([](std::int64_t batch) {
                                                          return testing::chain(
                                                              {testing::layer("A", 1e-2, 2e-2, 1e-4, {1e6}),
                                                               testing::layer("B", 1e-2, 2e-2, 1e-4, {3e6})},
                                                              batch);
                                                        })})
          .log;
  REQUIRE(log.pieces.size() == 2);
  std::map<std::string, double> shares;
  for (const LoggedPiece& piece : log.pieces) shares[piece.name] = piece.share;
  CHECK(shares["A"] == Approx(0.25));
  CHECK(shares["B"] == Approx(0.75));
}

}  // namespace epocast::parameter_log_test
