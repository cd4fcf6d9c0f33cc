#pragma once
// Several runs that differ only in the seed of their noise, as one result.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "experiments/result.hpp"

namespace epocast {

/// Half width of the 95 % confidence interval of the mean of these values, by Student's t; 0 for fewer than two.
double confidence_half_width(const std::vector<double>& values);

/// Numbers are means, but for max_staleness (the largest) and iterations_simulated (all together); the other whole
/// numbers are the same in all runs. What any run lacks, the result lacks. iteration_ci95 is that of the mean over
/// seeds. Texts are those of the first run. REQUIRES: at least one.
ScenarioResult mean_over_seeds(const std::vector<ScenarioResult>& runs);

/// For `run --details`: of each column that is a number in all runs, mean, ci95 and the values, by seed.
nlohmann::ordered_json seeds_section(const std::vector<ScenarioResult>& runs, const std::vector<std::uint64_t>& seeds);

}  // namespace epocast
