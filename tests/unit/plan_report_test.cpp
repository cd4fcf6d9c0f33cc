// What a plan says of the choices that it did not make.

#include <catch2/catch.hpp>
#include <sstream>

#include "experiments/plan/plan_report.hpp"

namespace epocast::plan_report_test {

namespace {

/// Scenarios of an axis `stage`, of which the first was simulated and is the best.
struct Case {
  std::vector<Scenario> scenarios;
  Plan plan;

  void add(const std::string& stage) {
    scenarios.push_back({.study = "stages",
                         .name = "stage=" + stage,
                         .axes = {{"stage", stage}},
                         .base = ConfigNode::load_text("study: stages", "stages.yaml"),
                         .settings = {}});
    plan.candidates.push_back({.index = plan.candidates.size()});
  }
  void simulated(const std::string& stage, double seconds) {
    add(stage);
    PlanCandidate& candidate = plan.candidates.back();
    candidate.state = PlanCandidate::simulated;
    candidate.meets = true;
    candidate.bound = seconds;
    candidate.result.emplace();
    candidate.result->axes = scenarios.back().axes;
    candidate.result->total_s = seconds;
    plan.ranking.push_back(candidate.index);
    ++plan.tried;
  }
  void bounded(const std::string& stage, double seconds) {
    add(stage);
    plan.candidates.back().bound = plan.candidates.back().least.total_s = seconds;
  }
  std::string text() const {
    std::ostringstream out;
    write_plan(out, scenarios, plan, {.objective = Objective::time}, 5);
    return out.str();
  }
};

}  // namespace

TEST_CASE("the best with another choice is not one that something unsimulated may undercut") {
  Case one;
  one.simulated("1", 100);
  one.simulated("3", 120);
  one.bounded("3", 105);  // takes 105 s or more, so the best of stage 3 is somewhere between 105 and 120 s
  const auto open = best_other_choice(one.scenarios, one.plan, Objective::time, 0);
  REQUIRE(open);
  CHECK(open->index == 2);
  CHECK_FALSE(open->known);
  const std::string text = one.text();
  CAPTURE(text);
  CHECK(text.find("at least 1.750 min") != std::string::npos);  // 105 s
  CHECK(text.find("+5.0 %") != std::string::npos);
  CHECK(text.find("+20.0 %") == std::string::npos);
  CHECK(text.find("of the 2 simulated, best first; 1 other was only bounded") != std::string::npos);
}

TEST_CASE("the best with another choice is known once bounds rule out the rest") {
  Case one;
  one.simulated("1", 100);
  one.simulated("3", 120);
  one.bounded("3", 120);  // as good at best
  one.bounded("1", 101);  // chooses as the first does
  const auto known = best_other_choice(one.scenarios, one.plan, Objective::time, 0);
  REQUIRE(known);
  CHECK(known->index == 1);
  CHECK(known->known);
  const std::string text = one.text();
  CAPTURE(text);
  CHECK(text.find("+20.0 %") != std::string::npos);
  CHECK(text.find("at least") == std::string::npos);
  CHECK(text.find("2 others were only bounded") != std::string::npos);
  CHECK(text.starts_with("stages: 1.667 min\n"));  // not "1.667 min in 1.667 min"
}

TEST_CASE("a plan of which everything was simulated has nothing open") {
  Case one;
  one.simulated("1", 100);
  one.simulated("3", 120);
  const std::string text = one.text();
  CAPTURE(text);
  CHECK(text.find("bounded") == std::string::npos);
  CHECK(text.find("2 of 2 scenarios simulated (100 %)") != std::string::npos);
  Case alone;
  alone.simulated("1", 100);
  CHECK_FALSE(best_other_choice(alone.scenarios, alone.plan, Objective::time, 0));
  CHECK(alone.text().find("1 of 1 scenario simulated (100 %)") != std::string::npos);
}

}  // namespace epocast::plan_report_test
