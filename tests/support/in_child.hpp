#pragma once
// SimGrid allows one engine per process, ever: whatever simulates in a test does so in a forked child.

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/fork_pool.hpp"

namespace epocast::testing {

/// Calls job(i) for i in 0..jobs-1, each in a child, as many at a time as there are processors; returns what they
/// return. Throws std::runtime_error with the message of the first job that threw or died.
inline std::vector<std::string> in_children(int jobs, const std::function<std::string(int)>& job) {
  std::vector<std::string> outputs(static_cast<std::size_t>(jobs));
  std::string problem;
  run_forked(jobs, available_processors(), job, [&](int i, JobOutcome outcome) {
    if (outcome.finished)
      outputs[static_cast<std::size_t>(i)] = std::move(outcome.output);
    else if (problem.empty())
      problem =
          outcome.errors + (outcome.signal != 0 ? " (killed by signal " + std::to_string(outcome.signal) + ")" : "");
  });
  if (!problem.empty()) throw std::runtime_error(problem);
  return outputs;
}

/// Calls job() in a child; as above.
inline std::string in_child(const std::function<std::string()>& job) {
  return in_children(1, [&](int) { return job(); }).front();
}

}  // namespace epocast::testing
