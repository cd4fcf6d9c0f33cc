#pragma once
// SimGrid allows one engine per process, ever: whatever simulates in a test does so in a forked child.

#include <functional>
#include <optional>
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
  const auto keep_problem = [&](const JobOutcome& outcome) {
    if (!outcome.finished && problem.empty())
      problem =
          outcome.errors + (outcome.signal != 0 ? " (killed by signal " + std::to_string(outcome.signal) + ")" : "");
  };
  // A process takes the longer to fork the larger it is, and what the jobs return can be large: a first child, which
  // keeps none of it, makes the others.
  const auto make_children = [&](int) -> std::string {
    run_forked(jobs, available_processors(), job, [&](int i, const JobOutcome& outcome) {
      keep_problem(outcome);
      if (outcome.finished) send_message(std::to_string(i) + ' ' + outcome.output);
    });
    if (!problem.empty()) throw std::runtime_error(problem);
    return {};
  };
  run_forked(
      {.next = [started = false]() mutable { return std::exchange(started, true) ? std::nullopt : std::optional(0); },
       .job = make_children,
       .message =
           [&](int, const std::string& text) {
             const std::size_t space = text.find(' ');
             outputs[std::stoul(text.substr(0, space))] = text.substr(space + 1);
           },
       .done = [&](int, const JobOutcome& outcome) { keep_problem(outcome); }},
      1);
  if (!problem.empty()) throw std::runtime_error(problem);
  return outputs;
}

/// Calls job() in a child; as above.
inline std::string in_child(const std::function<std::string()>& job) {
  return in_children(1, [&](int) { return job(); }).front();
}

}  // namespace epocast::testing
