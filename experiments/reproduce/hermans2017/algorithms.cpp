// The thesis prints no numbers: what is compared is what its algorithms do, followed literally (follow_algorithms()
// below), with what the simulation of asynchronous parameter servers does.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/timeline.hpp"
#include "sim/data_directory.hpp"

namespace epocast::hermans2017 {
namespace {

constexpr double kStep[] = {10, 13};  // s, of each worker; as in algorithms.yaml
constexpr int kCommits = 5;           // of each worker: 6000 samples in batches of 600 for two
constexpr double kMessages = 0.05;    // s: five rounds of messages and updates take less than this together

/// One commit: Algorithm 1, line 8, and Algorithm 2, lines 6 to 9.
struct Commit {
  double time = 0;           ///< s: when the server applies it
  std::int64_t version = 0;  ///< t of the centre variable that it makes
  std::int64_t pulled = 0;   ///< t of the one that its gradient was computed with

  /// Updates by others between pull and commit: 0 if the gradient was computed with what it is applied to.
  std::int64_t staleness() const { return version - 1 - pulled; }
};

/// By worker and its commits. `events` are pulls and commits in the order in which the server sees them.
using Commits = std::map<std::pair<std::uint32_t, std::int64_t>, Commit>;

/// Algorithms 1 and 2, followed with messages and updates that take no time. The server is a FIFO queue (figure 1.4):
/// of equal times, there are none here.
Commits follow_algorithms() {
  struct Worker {
    std::int64_t pulled = 0;  // line 2: the first PULL, at time 0
    int commits = 0;
  };
  Commits out;
  Worker workers[2];
  std::int64_t t = 0;  // of the parameter server
  while (true) {
    // Who commits next? Everybody's next step ends one step after its last commit.
    int next = -1;
    double when = 0;
    for (int k = 0; k < 2; ++k) {
      const double end = (workers[k].commits + 1) * kStep[k];
      if (workers[k].commits < kCommits && (next < 0 || end < when)) {
        next = k;
        when = end;
      }
    }
    if (next < 0) return out;
    Worker& worker = workers[next];
    const std::int64_t pulled = worker.pulled;
    worker.pulled = ++t;  // COMMIT, then PULL: what it has just made
    out[{static_cast<std::uint32_t>(next), worker.commits++}] = {when, t, pulled};
  }
}

/// The same from a simulated timeline, by the order of what happened.
Commits read_commits(const std::vector<TimelineEntry>& timeline) {
  struct Event {
    double time;
    bool is_pull;
    std::uint32_t rank;
    std::int64_t iteration;
  };
  std::vector<Event> events;
  for (const TimelineEntry& entry : timeline) {
    if (entry.operation == "pull") events.push_back({entry.start, true, entry.rank, entry.iteration});
    if (entry.operation == "update") events.push_back({entry.end, false, entry.rank, entry.iteration});
  }
  // A pull may begin the moment an update ends: with what that made.
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.is_pull < b.is_pull;
  });
  Commits out;
  std::map<std::uint32_t, std::int64_t> pulled;
  std::int64_t t = 0;
  for (const Event& event : events) {
    if (event.is_pull)
      pulled[event.rank] = t;
    else
      out[{event.rank, event.iteration}] = {event.time, ++t, pulled[event.rank]};
  }
  return out;
}

std::string ordinal(std::uint32_t worker, std::int64_t commit) {
  return fmt::format("worker {} commit {}", worker + 1, commit + 1);
}

TargetRow exact(std::string row, std::string quantity, std::string unit, std::optional<double> published,
                double simulated, double tolerance, std::string note = "") {
  return {.row = std::move(row),
          .quantity = std::move(quantity),
          .unit = std::move(unit),
          .published = published,
          .simulated = simulated,
          .role = Role::exact,
          .tolerance = tolerance,
          .note = std::move(note)};
}

std::vector<TargetRow> run_algorithms(const TargetContext& context) {
  const std::filesystem::path file = data_directory() / "experiments" / "reproduce" / "hermans2017" / "algorithms.yaml";
  const Study study = load_study(file, {});
  const Commits simulated = read_commits(simulate_timeline(study.scenarios.front(), context));

  std::vector<TargetRow> rows;
  for (const auto& [key, followed] : follow_algorithms()) {
    const std::string row = ordinal(key.first, key.second);
    const auto found = simulated.find(key);
    const Commit commit = found == simulated.end() ? Commit{-1, -1, -1} : found->second;
    rows.push_back(exact(row, "applied at", "s", followed.time, commit.time, kMessages));
    rows.push_back(exact(row, "makes version", "versions", static_cast<double>(followed.version),
                         static_cast<double>(commit.version), 0));
    rows.push_back(exact(row, "staleness", "versions", static_cast<double>(followed.staleness()),
                         static_cast<double>(commit.staleness()), 0,
                         key == std::pair{1U, std::int64_t{0}} ? "the stale gradient of figure 1.4" : ""));
  }

  // Equation 4.1 sums from 0 to lambda and divides by lambda. A rule that normalises gives a gradient that is always
  // the same its own size back.
  constexpr int kPeriod = 5;
  const Study agn = load_study(file, {{"strategy", fmt::format("{{name: agn, period: {}}}", kPeriod)}});
  double gradients = 0;
  for (const TimelineEntry& entry : simulate_timeline(agn.scenarios.front(), context))
    gradients += entry.operation == "sum gradients" && entry.rank == 0 && entry.iteration == 0 ? 1 : 0;
  ++gradients;  // the first is the sum so far
  const std::string row = fmt::format("equation 4.1, lambda = {}", kPeriod);
  rows.push_back(exact(row, "gradients in a commit, as printed", "gradients", std::nullopt, kPeriod + 1, 0,
                       "the sum runs from 0 to lambda: a constant gradient comes out too large by 1/lambda"));
  rows.push_back(exact(row, "gradients in a commit, corrected", "gradients", kPeriod, gradients, 0,
                       "from 0 to lambda - 1; counted in the simulation of agn"));

  // Section 1.3: |p_i| is printed as about 1/|D|.
  constexpr double kSamples = 6000, kWorkers = 2, kBatch = 600;
  rows.push_back(
      exact("shard", "samples, as printed", "samples", std::nullopt, 1 / kSamples, 0, "1/|D| is no number of samples"));
  double steps = 0;
  for (const auto& [key, commit] : simulated) steps += key.first == 0 ? 1 : 0;
  rows.push_back(exact("shard", "samples, corrected", "samples", kSamples / kWorkers, steps * kBatch, 0,
                       "|D|/n; steps of a worker x batch in the simulation"));
  return rows;
}

}  // namespace

Target algorithms() {
  return {"hermans2017", "algorithms",
          "Algorithms 1 and 2 for the two workers of figure 1.4, followed literally and simulated", std::nullopt,
          run_algorithms};
}

}  // namespace epocast::hermans2017
