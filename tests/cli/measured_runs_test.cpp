// `epocast reproduce FILE`: forecasts of a user's own runs.
//
// The study below computes for 1 s and then reduces 100e6 parameters, 400 MB, over a ring of links of 1 GB/s with 2.5
// us from rank to rank: on n workers 2 (n - 1) 2.5 us + 2 (n - 1) / n 0.4 s, which is 0.600015 s on 4 and 0.400005 s
// on 2.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace epocast::measured_runs_test {

using namespace epocast::test;
using Catch::Contains;

namespace {

constexpr const char* kStudy = R"(study: runs
platform: ideal_star_1024
model: {opaque: net, parameters: 100e6, tensors: 10}
batch: {per_worker: 8}
dataset: {samples: 1000000}
collective: {algorithm: ring}
strategy: {name: data_parallel, granularity: model, overlap: false}
)";

constexpr const char* kTarget = R"(target: ours/ring
description: a ring
study: study.yaml
runs: runs.csv
groups: [network]
)";

class Runs {
 public:
  Runs(const std::string& rows, const std::string& more = "") {
    folder_.write("study.yaml", kStudy);
    folder_.write("target.yaml", kTarget + more);
    folder_.write("runs.csv", "# source: made up\n" + rows);
  }
  ProgramRun reproduce(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"reproduce", "target.yaml"});
    return run_program(more, folder_.path());
  }
  /// Simulated value and error of the trivial rule, by row.
  std::map<std::string, std::vector<std::string>> rows(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--format", "csv"});
    const ProgramRun run = reproduce(more);
    CAPTURE(run.err);
    std::map<std::string, std::vector<std::string>> out;
    for (const std::string& line : split(run.out, '\n'))
      if (std::vector<std::string> cells = split(line, ','); cells.size() > 10) out[cells[2]] = cells;
    return out;
  }

 private:
  TemporaryFolder folder_;
};

double number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

}  // namespace

TEST_CASE("runs are forecast from their baseline, and linear scaling stands beside") {
  const Runs runs(
      "series,role,network,workers,samples_per_s\n"
      "a,baseline,ring,1,8\n"
      "a,run,ring,4,16\n");
  const auto rows = runs.rows();
  REQUIRE(rows.contains("a; workers=1"));
  const auto& run = rows.at("a; workers=4");
  CHECK(number(run[6]) == Approx(4 * 8 / 1.600015).epsilon(1e-6));
  CHECK(run[8] == "predicted");
  CHECK(number(run[10]) == Approx(32).epsilon(1e-12));   // linear
  CHECK(number(run[11]) == Approx(100).epsilon(1e-12));  // percent off 16
}

TEST_CASE("a baseline of several devices anchors one device's computation") {
  // 2 workers in 1.400005 s compute for 1 s, so 4 take 1.600015 s.
  const Runs runs(
      "series,role,network,workers,iteration_ms\n"
      "a,baseline,ring,2,1400.005\n"
      "a,run,ring,4,1600.015\n");
  CHECK(number(runs.rows().at("a; workers=4")[6]) == Approx(1.600015).epsilon(1e-5));
}

TEST_CASE("--set changes the study of all runs") {
  const Runs runs(
      "series,role,network,workers,samples_per_s\n"
      "a,baseline,ring,1,8\n"
      "a,run,ring,4,16\n");
  // twice the links: 0.3 s and 15 us
  CHECK(number(runs.rows({"--set", "network.efficiency=2"}).at("a; workers=4")[6]) ==
        Approx(32 / 1.300015).epsilon(1e-6));
}

TEST_CASE("bounds on medians and on the share of linear scaling's error can be missed") {
  const std::string rows =
      "series,role,network,workers,samples_per_s,note\n"
      "a,baseline,ring,1,8,\n"
      "a,run,ring,4,20,\n"
      "a,left_out,ring,2,1,somebody else used the network\n";
  // 19.99981 instead of 20: 0.001 %, where linear scaling is 60 % off
  const ProgramRun met = Runs(rows, "bounds: {median: 0.01, ninetieth: 0.01, share_of_trivial: 1}\n").reproduce();
  CHECK(met.exit_code == 0);
  CHECK_THAT(met.out, Contains("bound: median of at most 0.01 %, is ") && !Contains("no bound declared") &&
                          Contains("bound: share of the trivial rule's error of at most 1.00 %, is "));
  CHECK_THAT(Runs(rows).reproduce().out, Contains("no bound declared"));
  const ProgramRun missed = Runs(rows, "bounds: {median: 0.0001}\n").reproduce();
  CHECK(missed.exit_code == 1);
  CHECK_THAT(missed.out, Contains("missed: median of 0.00 % is beyond the bound of 0.00 %"));
  CHECK_THAT(missed.out, Contains("errors by") && Contains("ring"));
}

TEST_CASE("of two runs with equal cells the faster one is known, or the pair is named") {
  const std::string rows =
      "series,role,network,workers,samples_per_s\n"
      "a,baseline,ring,1,8\n"
      "a,run,ring,4,20\n"
      "b,baseline,ring,1,10\n"
      "b,run,ring,4,15\n";  // 40 samples/s without the 0.6 s of the all-reduce: more than a, not less
  const ProgramRun run = Runs(rows, "winners: {equal: [network, workers]}\n").reproduce();
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.out,
             Contains("winners: 0 of 1 right, of pairs with equal network, workers that differ by more than 3 %"));
  CHECK_THAT(run.out, Contains("missed: a; workers=4 before b; workers=4: +33.3 % measured, -"));
  const std::string known =
      "known_misses: [{what: a; workers=4 before b; workers=4, at_most: 34, why: somebody else was on b}]\n";
  CHECK(Runs(rows, "winners: {equal: [network, workers]}\n" + known).reproduce().exit_code == 0);
  CHECK(Runs(rows, "winners: {equal: [workers], gap: 40}\n").reproduce().exit_code == 0);
  const ProgramRun typo = Runs(rows, "winners: {equal: [netwrk]}\n").reproduce();
  CHECK(typo.exit_code == 2);
  CHECK_THAT(typo.err, Contains("the table has no column 'netwrk' (did you mean 'network'?)"));
}

TEST_CASE("tables of runs that make no sense are refused with their place") {
  const auto said = [](const std::string& rows) {
    const ProgramRun run = Runs(rows).reproduce();
    CHECK(run.exit_code == 2);
    return run.err;
  };
  const std::string head = "series,role,network,workers,samples_per_s\n";
  CHECK_THAT(said(head + "a,baseline,ring,1,8\na,baseline,ring,2,8\na,run,ring,4,9\n"),
             Contains("runs.csv:4: role: series 'a' has a baseline already, in line 3"));
  CHECK_THAT(said(head + "a,baseline,ring,1,8\n"), Contains("runs.csv:3: role: series 'a' has a baseline and no run"));
  CHECK_THAT(said(head + "a,run,ring,1,8\na,run,ring,1,9\n"),
             Contains("runs.csv:4: this run of series 'a' is there twice"));
  CHECK_THAT(said(head + "a,basline,ring,1,8\n"), Contains("unknown role 'basline' (did you mean 'baseline'?)"));
  CHECK_THAT(said(head + "a,left_out,ring,1,8\n"), Contains("must say why"));
  CHECK_THAT(said(head + "a,run,ring,1,0\n"), Contains("samples_per_s"));
  CHECK_THAT(said("series,role,network,workers\na,run,ring,1\n"), Contains("no column has the measurement"));
  CHECK_THAT(said("series,role,network,workrs,samples_per_s\na,run,ring,1,8\n"), Contains("did you mean 'workers'"));
  // 4 workers that take 0.1 s a step, less than the all-reduce alone
  CHECK_THAT(said(head + "a,baseline,ring,4,320\na,run,ring,8,500\n"),
             Contains("runs.csv:3: role: baseline of a: step_time of") && Contains("leaves no time for passes"));
}

}  // namespace epocast::measured_runs_test
