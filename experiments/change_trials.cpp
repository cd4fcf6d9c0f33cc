#include "experiments/change_trials.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <utility>

#include "experiments/fork_pool.hpp"
#include "sim/error.hpp"

namespace epocast {

/// Which changes are to be tried, and what came of those that have been, in memory that all children share.
class ChangeTrials::Shared {
 public:
  explicit Shared(const std::vector<StudyChange>& changes) : changes_(changes), bytes_(changes.size() * sizeof(Trial)) {
    if (changes.empty()) return;
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    trials_ = static_cast<Trial*>(at);
    for (std::size_t i = 0; i < changes.size(); ++i) new (trials_ + i) Trial;
  }
  ~Shared() {
    if (trials_ != nullptr) munmap(trials_, bytes_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  /// Takes the first whose milder changes are all known not to fit, for the caller to try. None if there is none now.
  std::optional<std::size_t> take() {
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (trials_[i].state != State::waiting) continue;
      const std::vector<std::size_t>& milder = changes_[i].milder;
      if (!std::ranges::all_of(milder, [&](std::size_t m) { return ended(trials_[m].state); })) continue;
      const bool needless = std::ranges::any_of(milder, [&](std::size_t m) { return trials_[m].state == State::fits; });
      State waiting = State::waiting;
      if (trials_[i].state.compare_exchange_strong(waiting, needless ? State::no_use : State::under_way) && !needless)
        return i;
    }
    return std::nullopt;
  }

  void end(std::size_t change, std::optional<double> iteration) {
    trials_[change].iteration = iteration.value_or(0);
    trials_[change].state = iteration ? State::fits : State::no_use;
  }

  /// Those under way were not tried after all; again, or never.
  void drop(bool again) {
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (trials_[i].state == State::under_way) trials_[i].state = again ? State::waiting : State::no_use;
  }

  bool any_waiting() const {
    return std::any_of(trials_, trials_ + changes_.size(), [](const Trial& t) { return t.state == State::waiting; });
  }

  std::vector<Remedy> remedies() const {
    std::vector<Remedy> out;
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (trials_[i].state == State::fits) out.push_back({changes_[i].text, trials_[i].iteration});
    std::ranges::stable_sort(out, {}, &Remedy::iteration_s);
    return out;
  }

 private:
  enum class State { waiting, under_way, fits, no_use };
  static bool ended(State state) { return state == State::fits || state == State::no_use; }
  struct Trial {
    std::atomic<State> state = State::waiting;
    double iteration = 0;  ///< [s], where it fits
  };
  static_assert(std::atomic<State>::is_always_lock_free);

  const std::vector<StudyChange>& changes_;
  std::size_t bytes_;
  Trial* trials_ = nullptr;
};

ChangeTrials::ChangeTrials(std::vector<StudyChange> changes, SimulateChange simulate)
    : changes_(std::move(changes)), simulate_(std::move(simulate)), shared_(std::make_unique<Shared>(changes_)) {}

ChangeTrials::~ChangeTrials() = default;

void ChangeTrials::try_all() {
  while (const std::optional<std::size_t> i = shared_->take()) shared_->end(*i, simulate_(changes_[*i]));
}

void ChangeTrials::begin(int children) {
  begun_children_ = children;
  begun_ = std::make_unique<ForkPool>([this](int) { return try_all(), std::string(); }, children);
}

void ChangeTrials::run(int children) {
  run_forked(
      children, children, [this](int) { return try_all(), std::string(); }, [](int, const JobOutcome&) {});
}

std::vector<Remedy> ChangeTrials::finish(int children) {
  try {
    if (children > begun_children_ && shared_->any_waiting()) run(children - begun_children_);
    if (begun_) begun_->wait();
    begun_.reset();
    shared_->drop(false);  // of children that have died
    while (shared_->any_waiting()) {
      run(1);
      shared_->drop(false);
    }
  } catch (const ConfigError&) {  // the system allows no further process: here, then
    if (begun_) begun_->wait();
    shared_->drop(true);
    try_all();
  }
  return shared_->remedies();
}

}  // namespace epocast
