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

TEST_CASE("a key that replaces others is set before them, whatever the order of axes", "[sweep]") {
  const Study study = study_of("  strategy.overlap: [true, false]\n  strategy: [ring, {name: tree, overlap: true}]");
  CHECK(names_of(study) == std::vector<std::string>{"strategy.overlap=true, strategy=ring",
                                                    "strategy.overlap=true, strategy=tree(overlap=true)",
                                                    "strategy.overlap=false, strategy=ring",
                                                    "strategy.overlap=false, strategy=tree(overlap=true)"});
  for (std::size_t s = 0; s < 4; ++s) {
    const ConfigNode strategy = study.scenarios[s].config().at("strategy");
    CHECK(strategy.at("name").as_string() == (s % 2 == 0 ? "ring" : "tree"));
    CHECK(strategy.at("overlap").as_bool() == (s < 2));
  }
  const Study tied = study_of("  zip: {compute.efficiency: [0.1, 0.2], compute: [roofline, fitted]}");
  CHECK(tied.scenarios[1].config().at("compute").at("efficiency").as_double() == 0.2);
  CHECK(tied.scenarios[1].config().at("compute").at("cost_model").as_string() == "fitted");
  // So are those of the command line.
  const Study set = study_of("  workers: [1]", {{"strategy.overlap", "false"}, {"strategy", "tree"}});
  CHECK(set.scenarios[0].config().at("strategy").flow_text() == "{name: tree, overlap: false}");
}

TEST_CASE("sizes of the batch replace each other, and nothing else", "[sweep]") {
  const auto batches = [](const std::string& sweep, const std::vector<Override>& overrides) {
    std::vector<std::string> out;
    for (const Scenario& scenario : study_of(sweep, overrides).scenarios)
      out.push_back(scenario.config().at("batch").flow_text());
    return out;
  };
  const std::vector<std::string> wanted{"{global: 32, spare: idle}", "{global: 64, spare: idle}"};
  CHECK(batches("  batch.global: [32, 64]\n  batch.spare: [idle]", {}) == wanted);
  CHECK(batches("  workers: [1]", {{"batch.spare", "idle"}}) == std::vector<std::string>{wanted[1]});
  CHECK(batches("  batch.global: [32, 64]", {{"batch.spare", "idle"}}) == wanted);
  const Override size{"batch.per_worker", "8"}, spare{"batch.spare", "idle"};
  CHECK(batches("  workers: [1]", {size, spare}) == std::vector<std::string>{"{per_worker: 8, spare: idle}"});
  CHECK(batches("  workers: [1]", {spare, size}) == std::vector<std::string>{"{spare: idle, per_worker: 8}"});
  // Two axes over sizes contradict each other; the command line's holds.
  const std::string problem =
      "study.yaml:7:17: sweep.batch.global: 'batch.per_worker' has an axis, too, and one of them would replace the "
      "other; leave one out";
  CHECK(problem_of("  batch.per_worker: [8, 16]\n  batch.global: [32, 64]") == problem);
  CHECK(problem_of("  zip: {batch.per_replica: [8], batch.global: [32]}").find("leave one out") != std::string::npos);
  const Study study = study_of("  batch.per_worker: [8, 16]", {size, {"sweep.batch.global", "[32, 64]"}});
  CHECK(names_of(study) == std::vector<std::string>{"batch.global=32", "batch.global=64"});
  CHECK(study.scenarios[0].config().at("batch").flow_text() == "{global: 32}");
}

TEST_CASE("conditions are about what the command line says", "[sweep]") {
  const std::string sweep = "  workers: [1, 2, 4]\n  where: batch.global / workers >= 32";
  CHECK(study_of(sweep).scenarios.size() == 2);  // 64 and 32 of one worker, and 16
  CHECK(study_of(sweep, {{"batch.global", "128"}}).scenarios.size() == 3);
  CHECK(study_of(sweep, {{"batch", "{global: 32}"}}).scenarios.size() == 1);
  // Other rules instead of the file's.
  CHECK(names_of(study_of(sweep, {{"sweep.where", "workers = 4"}})) == std::vector<std::string>{"workers=4"});
  CHECK(
      names_of(study_of("  workers: [1]\n  where: strategy.overlap = 'false'",
                        {{"strategy", "{name: tree, overlap: true}"}, {"sweep.strategy.overlap", "[true, false]"}})) ==
      std::vector<std::string>{"workers=1, strategy.overlap=false"});
  // What an axis replaces is there no more.
  CHECK(problem_of("  batch: [{global: 32}, {per_worker: 8}]\n  where: batch.global > 1").find("no column") !=
        std::string::npos);
}

TEST_CASE("quantities compare with quantities of their kind, by value", "[sweep]") {
  CHECK(names_of(study_of("  strategy.bucket: [1 MiB, 25 MiB, 4 kB]\n  where: strategy.bucket > '2 MiB'")) ==
        std::vector<std::string>{"strategy.bucket=25 MiB"});
  CHECK(names_of(study_of("  price.node_hour: [2 $, 12 $]\n  where: price.node_hour < '3 $'")) ==
        std::vector<std::string>{"price.node_hour=\"2 $\""});
  const std::vector<std::string> names{"size", "time", "count", "word"};
  const std::vector<std::string> is{"4 kB", "90 s", "3", "ring"};
  const std::vector<std::vector<std::string>> may_be{{"4 kB", "1 MiB"}, {"90 s"}, {"3"}, {"ring", "none"}};
  for (const char* text : {"size < '1 MiB'", "'1 MiB' > size", "size = '4000 B'", "size between '1 kB' and '5 kB'",
                           "time > '1 min'", "size in ('1 MiB', '4000 B')", "size not in ('1 MiB')",
                           "size is not null and size like '4%'", "count > 2 and word = 'ring'", "size <> 'none'"}) {
    CAPTURE(text);
    CHECK(Condition(text, names, may_be).holds(is));
  }
  for (const char* text : {"size > 5", "5 < size", "size > -5", "(size) > (5)", "size > count", "size < time",
                           "size = '4 s'", "count < '4 kB'", "size between 1 and 5", "size in ('1 MiB', 5)",
                           "\"size\" > 5", "size * 2 > '1 MB'", "2 + time > '1 s'"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Condition(text, names, may_be), ConfigError);
  }
  CHECK(problem_of("  strategy.bucket: [1 MiB, 4 kB]\n  where: strategy.bucket > 5")
            .find("study.yaml:7:10: sweep.where: 'strategy.bucket > 5': compares strategy.bucket, an amount of data, "
                  "with 5, a number") == 0);
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
