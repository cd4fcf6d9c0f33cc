// The order of a stage's work, against what the papers say of it.
#include <catch2/catch.hpp>

#include <algorithm>

#include "strategies/schedules/schedule.hpp"

namespace epocast::pipeline_schedule_test {

namespace {

int forward_passes_before_the_first_backward(const StageProgram& program) {
  const auto backward = std::find_if(program.begin(), program.end(),
                                     [](const PipelineWork& w) { return w.pass == PipelinePass::backward; });
  return static_cast<int>(backward - program.begin());
}

}  // namespace

TEST_CASE("interleaving: a stage warms up with 2 (p - 1 - s) + (v - 1) p passes, then alternates", "[pipeline]") {
  // Narayanan et al. 2021, section 2.2, as Megatron-LM counts its warm-up: so many forward passes, then
  // a forward and a backward pass in turn. So one more forward pass comes before the first backward pass, and so many
  // are under way at most.
  for (const int p : {2, 3, 4, 8})
    for (const int v : {2, 3, 4})
      for (const int groups : {2, 3}) {
        const auto programs = stage_programs(PipelineSchedule::interleaved, p, v, groups * p);
        for (int s = 0; s < p; ++s) {
          INFO(p << " stages, " << v << " chunks, " << groups << " groups of micro-batches, stage " << s);
          const int expected = 2 * (p - 1 - s) + (v - 1) * p + 1;
          const StageProgram& program = programs[static_cast<std::size_t>(s)];
          CHECK(forward_passes_before_the_first_backward(program) == expected);
          CHECK(peak_in_flight(program) == expected);
        }
      }
}

TEST_CASE("1F1B: a stage warms up with p - 1 - s passes, GPipe with all", "[pipeline]") {
  for (const int p : {1, 2, 4})
    for (const int m : {4, 8}) {
      const auto alternating = stage_programs(PipelineSchedule::one_f_one_b, p, 1, m);
      const auto all_first = stage_programs(PipelineSchedule::gpipe, p, 1, m);
      for (int s = 0; s < p; ++s) {
        const auto stage = static_cast<std::size_t>(s);
        CHECK(forward_passes_before_the_first_backward(alternating[stage]) == p - s);
        CHECK(peak_in_flight(alternating[stage]) == p - s);
        CHECK(forward_passes_before_the_first_backward(all_first[stage]) == m);
      }
    }
}

}  // namespace epocast::pipeline_schedule_test
