#pragma once
// Whether a result can be true: looked at once, before anything is made of it.

#include <string>
#include <vector>

#include "sim/execution.hpp"

namespace epocast {

/// What is wrong with a result, a sentence each; none if nothing is. No link can carry more than its capacity, and no
/// iteration can be shorter than its lower bound, or an estimate by more than its confidence interval.
/// `overlooks_traffic`: collectives were not simulated although other traffic may share their links, so that nothing
/// says how far off the result is.
std::vector<std::string> doubts_about(const ExecutionResult& result, bool overlooks_traffic);

}  // namespace epocast
