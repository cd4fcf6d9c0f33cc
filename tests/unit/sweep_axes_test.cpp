// Which scenarios the `sweep` block of a study makes.

#include <catch2/catch.hpp>

#include "experiments/store/condition.hpp"
#include "experiments/study.hpp"
#include "experiments/sweep/axes.hpp"
#include "sim/error.hpp"

namespace epocast::sweep_axes_test {

namespace {

Study study_of(const std::string& sweep, const std::vector<Override>& overrides = {}) {
  return parse_study("study: s\nplatform: p\nmodel: m\nbatch: {global: 64}\nsweep:\n" + sweep, "study.yaml", overrides);
}

std::vector<std::string> names_of(const Study& study) {
  std::vector<std::string> out;
  for (const Scenario& scenario : study.scenarios) out.push_back(scenario.name);
  return out;
}

std::string problem_of(const std::string& sweep) {
  try {
    study_of(sweep);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranges", "[sweep]") {
  CHECK(names_of(study_of("  workers: {from: 2, to: 16, times: 2}")) ==
        std::vector<std::string>{"workers=2", "workers=4", "workers=8", "workers=16"});
  CHECK(names_of(study_of("  workers: {from: 1, to: 6, step: 2}")) ==
        std::vector<std::string>{"workers=1", "workers=3", "workers=5"});
  CHECK(names_of(study_of("  workers: {from: 3, to: 1, step: -1}")) ==
        std::vector<std::string>{"workers=3", "workers=2", "workers=1"});
  // Sums of tenths are not whole in binary; the end counts all the same, and labels are as one would write them.
  CHECK(names_of(study_of("  noise.compute_cv: {from: 0.1, to: 0.3, step: 0.1}")) ==
        std::vector<std::string>{"noise.compute_cv=0.1", "noise.compute_cv=0.2", "noise.compute_cv=0.3"});
  CHECK(names_of(study_of("  workers: {from: 8, to: 1, times: 0.5}")).size() == 4);
  CHECK(problem_of("  workers: {from: 1, to: 8}").find("a range has either step or times") != std::string::npos);
  CHECK(problem_of("  workers: {from: 1, to: 8, step: -1}").find("does not lead from 1 to 8") != std::string::npos);
  CHECK(problem_of("  workers: {from: 1, to: 8, times: 0.5}").find("does not lead from 1 to 8") != std::string::npos);
  CHECK(problem_of("  workers: {from: 0, to: 8, times: 2}").find("does not lead from 0 to 8") != std::string::npos);
  CHECK(problem_of("  workers: {from: 1, to: 1e9, step: 1}").find("makes more than") != std::string::npos);
}

TEST_CASE("tied axes vary together", "[sweep]") {
  const Study study = study_of("  zip:\n    workers: [1, 2]\n    batch.global: [32, 64]\n  model: [a, b]");
  CHECK(names_of(study) ==
        std::vector<std::string>{"workers=1, batch.global=32, model=a", "workers=1, batch.global=32, model=b",
                                 "workers=2, batch.global=64, model=a", "workers=2, batch.global=64, model=b"});
  CHECK(study.axes == std::vector<std::string>{"workers", "batch.global", "model"});
  CHECK(study.scenarios[2].config().at("batch").at("global").as_int() == 64);
  // Two ties are a product of two.
  CHECK(study_of("  zip:\n    - {workers: [1, 2], batch.global: [32, 64]}\n    - {model: [a, b], platform: [c, d]}")
            .scenarios.size() == 4);
  CHECK(problem_of("  zip: {workers: [1, 2], batch.global: [32]}").find("equally many") != std::string::npos);
  CHECK(problem_of("  zip: {workers: [1, 2]}\n  workers: [3]").find("'workers' has another axis") != std::string::npos);
  // One of them set by hand: the other stays.
  CHECK(names_of(study_of("  zip: {workers: [1, 2], batch.global: [32, 64]}", {{"workers", "4"}})) ==
        std::vector<std::string>{"batch.global=32", "batch.global=64"});
}

TEST_CASE("conditions leave combinations out, with a reason", "[sweep]") {
  const Study study = study_of(
      "  workers: [1, 2, 4]\n  batch.per_worker: [16, 32]\n  where:\n    - workers * batch.per_worker <= 64\n"
      "    - {keep: workers > 1, because: one is no team}\n    - batch.global = 64 and model = 'm'");
  CHECK(names_of(study) == std::vector<std::string>{"workers=2, batch.per_worker=16", "workers=2, batch.per_worker=32",
                                                    "workers=4, batch.per_worker=16"});
  REQUIRE(study.notes.size() == 2);
  CHECK(study.notes[0] == "1 combination left out: not workers * batch.per_worker <= 64");
  CHECK(study.notes[1] == "2 combinations left out: one is no team");
  CHECK(problem_of("  workers: [1]\n  where: workers > 1").find("leaves out every combination") != std::string::npos);
  CHECK(problem_of("  workers: [1]\n  where: wrokers > 1")
            .find("study.yaml:7:10: sweep.where: 'wrokers > 1': no column 'wrokers' (did you mean 'workers'?)") == 0);
  CHECK(problem_of("  workers: [1]\n  where: batch.globl > 1").find("did you mean 'batch.global'?") !=
        std::string::npos);
}

TEST_CASE("a condition can only compare", "[sweep]") {
  const std::vector<std::string> names{"a", "b.c", "d"};
  const auto holds = [&](const std::string& text, const std::vector<std::string>& values) {
    return Condition(text, names).holds(values);
  };
  CHECK(holds("a + b.c = 3", {"1", "2", ""}));
  CHECK(holds("a < 10", {"9", "0", ""}));  // numbers, not texts, of which '9' is the larger
  CHECK(holds("d = 'x' and d like '%X%'", {"1", "2", "x"}));
  CHECK(holds("abs(a) % 2 = 1", {"-3", "2", "x"}));
  CHECK_FALSE(holds("a = 1 or d in ('y', 'z')", {"2", "2", "x"}));
  CHECK_FALSE(holds("null", {"2", "2", "x"}));
  CHECK(holds("\"b.c\" = 2", {"1", "2", ""}));
  CHECK(holds("d = 'b.c'", {"1", "2", "b.c"}));  // in quotes it is a text
  for (const char* bad :
       {"", "a = ", "1) FROM (SELECT 1", "a; DELETE FROM x", "load_extension('x')", "readfile('x') = 1", "a = 1 --",
        "nothing = 1", "randomblob(1000000000) = 1", "a = \"texts\""}) {
    CAPTURE(bad);
    if (std::string(bad) == "a = 1 --")
      CHECK(Condition(bad, names).holds({"1", "2", "3"}));  // a comment is no harm
    else
      CHECK_THROWS_AS(Condition(bad, names), ConfigError);
  }
  CHECK(quoted_names("a*b.c>1e3 and 'a'='a'", names) == "\"a\"*\"b.c\">1e3 and 'a'='a'");
}

}  // namespace epocast::sweep_axes_test
