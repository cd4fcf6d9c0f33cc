#include "experiments/batch/scenario_batches.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <deque>
#include <map>
#include <set>

#include "experiments/batch/scenario_outcome.hpp"
#include "sim/fingerprint.hpp"
#include "sim/simgrid/simgrid.hpp"

namespace epocast {
namespace {

/// Parts of a study that a platform's links and their speed follow from.
constexpr const char* kNetworkOf[] = {"platform", "network", "steps", "stack"};

// Of a process: long enough for what it prepares to be worth it, and short enough for all to end at about the same
// time.
constexpr double kLeastSeconds = 0.2, kMostSeconds = 10;

/// Which scenarios are to be simulated by which process.
class BatchQueue {
 public:
  BatchQueue(const std::vector<std::size_t>& missing, const std::vector<std::string>& groups, int parallel)
      : parallel_(static_cast<std::size_t>(std::max(1, parallel))) {
    std::map<std::string, std::size_t> number;
    for (const std::size_t index : missing) {
      const auto [group, fresh] = number.emplace(groups[index], waiting_.size());
      if (fresh) waiting_.emplace_back();
      waiting_[group->second].push_back(index);
    }
    left_ = missing.size();
  }

  struct Batch {
    std::vector<std::size_t> indices;
    std::size_t reported = 0;
    bool alone = false;
  };

  /// The next batch's number; none if nothing waits.
  std::optional<int> next() {
    Batch batch;
    if (!alone_.empty()) {
      batch = {{alone_.front()}, 0, true};
      alone_.pop_front();
    } else {
      while (!waiting_.empty() && waiting_.front().empty()) waiting_.pop_front();
      if (waiting_.empty()) return std::nullopt;
      std::deque<std::size_t>& group = waiting_.front();
      while (!group.empty() && batch.indices.size() < fitting_size()) {
        batch.indices.push_back(group.front());
        group.pop_front();
      }
      batch.alone = batch.indices.size() == 1;  // then an engine made beforehand saves nothing
      // The next process takes another group, if there is one, so that none comes last as a whole.
      if (waiting_.size() > 1) std::rotate(waiting_.begin(), waiting_.begin() + 1, waiting_.end());
    }
    left_ -= batch.indices.size();
    batches_.push_back(std::move(batch));
    return static_cast<int>(batches_.size()) - 1;
  }
  const Batch& batch(int number) const { return batches_[static_cast<std::size_t>(number)]; }

  void reported(int number, const BatchedScenario& batched) {
    ++batches_[static_cast<std::size_t>(number)].reported;
    seconds_ += batched.seconds;
    ++simulated_;
  }
  /// To be tried again, by a process of its own.
  void again(std::size_t index) {
    alone_.push_back(index);
    ++left_;
  }
  /// Whether the scenario has had its second chance.
  bool last_chance(std::size_t index) { return !tried_.insert(index).second; }
  /// What a batch has not begun.
  void give_back(const Batch& batch, std::size_t from) {
    if (from >= batch.indices.size()) return;
    waiting_.emplace_back(batch.indices.begin() + static_cast<std::ptrdiff_t>(from), batch.indices.end());
    left_ += batch.indices.size() - from;
  }

 private:
  /// How many scenarios the next process takes: one, until it is known how long they take.
  std::size_t fitting_size() const {
    if (simulated_ == 0) return 1;
    const double mean = seconds_ / static_cast<double>(simulated_);
    const auto lasting = [&](double seconds) {
      return static_cast<std::size_t>(std::clamp(std::ceil(seconds / mean), 1.0, 1e6));
    };
    const std::size_t fair = (left_ + 2 * parallel_ - 1) / (2 * parallel_);
    return std::clamp(fair, lasting(kLeastSeconds), lasting(kMostSeconds));
  }

  std::size_t parallel_;
  std::deque<std::deque<std::size_t>> waiting_;  // by group
  std::deque<std::size_t> alone_;
  std::deque<Batch> batches_;
  std::set<std::size_t> tried_;
  std::size_t left_ = 0, simulated_ = 0;
  double seconds_ = 0;
};

}  // namespace

std::string network_group(const ConfigNode& config) {
  std::string network;
  for (const char* key : kNetworkOf)
    if (config.has(key)) network += std::string(key) + ": " + config.at(key).flow_text() + '\n';
  return fingerprint(network);
}

void run_batches(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
                 const std::vector<std::string>& groups, const Registries& registries, const BatchOptions& options,
                 int parallel, const BatchSink& sink) {
  BatchQueue queue(indices, groups, parallel);
  const auto after_several = [&] {
    if (sink.after_several) sink.after_several();
  };
  ForkedWork work;
  work.next = [&] { return queue.next(); };
  work.job = [&](int number) {
    const BatchQueue::Batch& batch = queue.batch(number);
    BatchProcess(registries, options).run(scenarios, batch.indices, batch.alone, [](const BatchedScenario& batched) {
      send_message(pack(batched));
    });
    return std::string();
  };
  work.message = [&](int number, const std::string& text) {
    BatchedScenario batched = unpack_batched(text);
    queue.reported(number, batched);
    if (batched.with_simgrid) load_simgrid();  // for all that come
    if (batched.wrong) return queue.again(batched.index);
    sink.ended(std::move(batched));
  };
  work.after_messages = after_several;
  work.done = [&](int number, const JobOutcome& outcome) {
    const BatchQueue::Batch& batch = queue.batch(number);
    if (batch.reported == batch.indices.size()) return;
    const std::size_t at = batch.indices[batch.reported];
    if (outcome.finished) return queue.give_back(batch, batch.reported);  // another process goes on
    // It has ended in the middle of a scenario; those behind it have not begun.
    queue.give_back(batch, batch.reported + 1);
    // Whoever ended it may have meant another one, unless it was the clock.
    if (outcome.signal != SIGALRM && !queue.last_chance(at)) return queue.again(at);
    const ScenarioResult dead = after_death(scenarios[at], registries, outcome, options.limits.seconds);
    sink.ended({.index = at,
                .result = options.encode(dead),
                .exit_code = dead.exit_code,
                .killed = outcome.signal == SIGKILL});
    after_several();
  };
  work.progress = sink.progress;
  run_forked(work, parallel);
}

}  // namespace epocast
