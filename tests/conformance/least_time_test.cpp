// No strategy takes less than what is said of its graph without running it.

#include "sim/least_time.hpp"

#include <catch2/catch.hpp>

#include <sstream>
#include <string>

#include "tests/conformance/strategy_outcomes.hpp"

namespace epocast::least_time_test {

using namespace epocast::conformance;

namespace {

/// Iteration and total of kLong iterations, as text: with and without the network.
std::string least_times(const Case& c) {
  SimEngine engine(cluster().platform_file.string());
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

TEST_CASE("no run is shorter than its graph says without running it", "[conformance]") {
  const std::vector<Outcome>& all = outcomes();
  const auto texts = testing::in_children(static_cast<int>(all.size()),
                                          [&](int i) { return least_times(all[static_cast<std::size_t>(i)].is); });
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

}  // namespace epocast::least_time_test
