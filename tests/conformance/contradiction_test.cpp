// No run contradicts itself without saying so: a link busier than all the time, or an iteration shorter than its bound,
// comes with a doubt and is not exact. Collectives at level closed_form beside other traffic are what leads there.
#include <catch2/catch.hpp>

#include "tests/conformance/strategy_outcomes.hpp"

namespace epocast::contradiction_test {

using namespace epocast::conformance;

TEST_CASE("no run contradicts itself without a doubt", "[conformance]") {
  // Links so slow that they, and not the devices, set the pace: there a link that carries two things at once is missed.
  const testing::Star slow(64, 125e6, 10e-6);
  std::vector<Case> cases;
  for (Case c : all_cases()) {
    // The star's devices have one core, which they need themselves: none for "communication_cores" or "server_cores".
    if (c.workers < 2 || c.variant.options.find("_cores") != std::string::npos) continue;
    c.variant.collective.level = CollectiveLevel::closed_form;
    cases.push_back(std::move(c));
  }
  const auto packed =
      testing::on_engines(slow.cluster(), static_cast<int>(cases.size()), [&](int job, SimEngine& engine) {
        const Case& c = cases[static_cast<std::size_t>(job)];
        return testing::execute_packed(slow.cluster(), engine,
                                       {{c.compile(slow.cluster()).graph, {.iterations = kShort}}});
      });
  int contradictions = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].text());
    const ExecutionResult result = testing::unpack(packed[i]).front();
    contradictions += contradicts_itself(result) ? 1 : 0;
    if (contradicts_itself(result)) CHECK_FALSE(result.doubts.empty());
    if (!result.doubts.empty()) CHECK_FALSE(result.exact);
  }
  CHECK(contradictions > 0);  // otherwise the above says nothing
}

}  // namespace epocast::contradiction_test
