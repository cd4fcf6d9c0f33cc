// The targets of Lee 2020, chapters 3 and 4: what must be met, and what is known to be missed.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/report.hpp"

namespace epocast::reproduce_lee2020_test {

namespace {

TargetResult result_of(const Target& target) {
  const Registries registries = builtin_registries();
  return reproduce(target, {registries, available_processors()});
}

const TargetRow& find(const TargetResult& result, const std::string& row, const std::string& quantity) {
  for (const TargetRow& candidate : result.rows)
    if (candidate.row == row && candidate.quantity == quantity) return candidate;
  FAIL("no row " << row << ": " << quantity);
  return result.rows.front();
}

int count(const TargetResult& result, Role role) {
  return static_cast<int>(std::ranges::count_if(result.rows, [&](const TargetRow& r) { return r.role == role; }));
}

/// Nothing is missed but what is declared.
void check_misses(const TargetResult& result, std::size_t known) {
  for (const Miss& miss : result.misses)
    if (miss.known.empty()) FAIL_CHECK(describe(miss));
  CHECK(result.misses.size() == known);
}

}  // namespace

TEST_CASE("Lee 2020, chapter 3: one input, six maxima of curves predicted", "[lee2020]") {
  const TargetResult result = result_of(lee2020::chapter3());
  check_misses(result, 2);
  CHECK(count(result, Role::input) == 1);
  CHECK(result.summary.predicted == 6);
  CHECK(result.summary.seen.cells == 6);
  CHECK(*result.summary.bound == 15);
  // Better than both rules that need no simulator.
  CHECK(*result.summary.mape < *result.summary.seen.constant_mape);
  CHECK(*result.summary.mape < *result.summary.seen.trivial_mape);
  CHECK(find(result, "all f", "best f").simulated == 2);
  CHECK(find(result, "all k", "best k").simulated == 9);
  CHECK(find(result, "VGG-A FC1", "weights").simulated == 392);
  CHECK(find(result, "VGG-A FC1", "gathered activations and errors").simulated == 28.5);
  // Larger batches scale further everywhere, so that of three maxima the first is the smallest.
  CHECK(find(result, "batch 128", "speedup").simulated < find(result, "parallel CNN", "speedup").simulated);
}

TEST_CASE("Lee 2020, chapter 4: no input; pcnn and ResNet-50 within 15 %", "[lee2020]") {
  const TargetResult result = result_of(lee2020::chapter4());
  check_misses(result, 3);
  CHECK(count(result, Role::input) == 0);
  CHECK(result.summary.predicted == 4);
  for (const TargetRow& row : result.rows)
    if (row.role == Role::predicted && row.row != "VGG-16 allreduce") {
      INFO(row.row);
      CHECK(std::abs(*row.error_pct()) < 15);
    }
}

TEST_CASE("Lee 2020: what the strategies send is what equations 4.2 to 4.9 and table 4.1 say", "[lee2020]") {
  const TargetResult result = result_of(lee2020::equations());
  check_misses(result, 0);
  // On 2, 16 and 256 workers, messages and volume each: six of each fully connected layer, one of the convolution,
  // three patterns.
  CHECK(result.summary.exact == 3 * 2 * (4 * 6 + 1 + 3));
  CHECK(result.summary.exact_matched == result.summary.exact);
  const double values = 25088 * 256 / 256.0 / 256 * 255 + 4096 * 256 / 256.0 * 255 + 25088 * 4096 / 256.0 * 255;
  CHECK(find(result, "VGG-16 FC1 P=256", "4.5 all three, volume").simulated == Approx(4 * values / 0x1p20));
}

}  // namespace epocast::reproduce_lee2020_test
