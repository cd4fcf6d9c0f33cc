#pragma once
// SimGrid allows one engine per process, ever: whatever simulates in a test does so in a forked child.

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/restart.hpp"
#include "sim/simgrid/simgrid.hpp"

namespace epocast::testing {

/// Jobs from `next` up to `end`, which a child does in turn.
struct JobShare {
  int next = 0, end = 0;
};

/// Calls job(i) for i in 0..jobs-1 in children, as many at a time as there are processors, each of which does `share`
/// jobs or fewer: as long as may_go_on() says so after one. Tells `done` the number of each and, behind a space,
/// what it returned. Throws std::runtime_error with the message of the first job that threw or died.
inline void run_shares(int jobs, int share, const std::function<std::string(int)>& job,
                       const std::function<bool()>& may_go_on, const std::function<void(std::string)>& done) {
  if (jobs > 2) load_simgrid();  // once for all, or each child would
  std::vector<JobShare> shares;
  for (int i = 0; i < jobs; i += share) shares.push_back({i, std::min(jobs, i + share)});
  std::size_t started = 0;
  std::string problem;
  run_forked(
      {.next = [&] { return started < shares.size() ? std::optional(static_cast<int>(started++)) : std::nullopt; },
       .job =
           [&](int s) {
             const JobShare mine = shares[static_cast<std::size_t>(s)];
             for (int i = mine.next; i < mine.end && (i == mine.next || may_go_on()); ++i)
               send_message(std::to_string(i) + ' ' + job(i));
             return std::string{};
           },
       .message =
           [&](int s, std::string text) {
             ++shares[static_cast<std::size_t>(s)].next;
             done(std::move(text));
           },
       .done =
           [&](int s, const JobOutcome& outcome) {
             const JobShare left = shares[static_cast<std::size_t>(s)];
             if (outcome.finished && left.next < left.end) shares.push_back(left);
             if (outcome.finished || !problem.empty()) return;
             problem = outcome.errors;
             if (outcome.signal != 0) problem += " (killed by signal " + std::to_string(outcome.signal) + ")";
           }},
      available_processors());
  if (!problem.empty()) throw std::runtime_error(problem);
}

/// The same; returns what the jobs return.
inline std::vector<std::string> in_shared_children(int jobs, int share, const std::function<std::string(int)>& job,
                                                   const std::function<bool()>& may_go_on) {
  std::vector<std::string> outputs(static_cast<std::size_t>(jobs));
  const auto keep = [&](const std::string& text) {
    const std::size_t space = text.find(' ');
    outputs[std::stoul(text.substr(0, space))] = text.substr(space + 1);
  };
  if (jobs <= share) {
    run_shares(jobs, share, job, may_go_on, keep);
    return outputs;
  }
  // A process takes the longer to fork the larger it is, and what the jobs return can be large: a first child, which
  // keeps none of it, makes the others.
  std::string problem;
  const auto make_children = [&](int) -> std::string {
    run_shares(jobs, share, job, may_go_on, send_message);
    return {};
  };
  run_forked(
      {.next = [started = false]() mutable { return std::exchange(started, true) ? std::nullopt : std::optional(0); },
       .job = make_children,
       .message = [&](int, const std::string& text) { keep(text); },
       .done =
           [&](int, const JobOutcome& outcome) {
             if (!outcome.finished) problem = outcome.errors;
           }},
      1);
  if (!problem.empty()) throw std::runtime_error(problem);
  return outputs;
}

/// The same with a child for each job.
inline std::vector<std::string> in_children(int jobs, const std::function<std::string(int)>& job) {
  return in_shared_children(jobs, 1, job, [] { return false; });
}

/// The same with few children, in each of which one engine of the platform begins every job as it began the first.
/// To load a platform and to touch the memory of a new process takes longer than to simulate a few iterations.
inline std::vector<std::string> on_engines(const Cluster& platform, int jobs,
                                           const std::function<std::string(int, SimEngine&)>& job) {
  constexpr int kMostPerChild = 100;
  std::optional<SimEngine> engine;  // in the child
  const auto with_engine = [&](int i) {
    if (!engine) engine.emplace(platform);
    return job(i, *engine);
  };
  const int share = std::clamp(jobs / (4 * available_processors()), 1, kMostPerChild);
  return in_shared_children(jobs, share, with_engine, restart_engine);
}

/// Calls job() in a child; as above.
inline std::string in_child(const std::function<std::string()>& job) {
  return in_children(1, [&](int) { return job(); }).front();
}

}  // namespace epocast::testing
