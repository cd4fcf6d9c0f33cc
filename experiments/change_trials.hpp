#pragma once
// Tries changes of a study, for advice.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "experiments/study_change.hpp"

namespace epocast {

/// How long an iteration takes with a change [s]; nothing where the study does not fit then, or cannot be simulated.
using SimulateChange = std::function<std::optional<double>(const StudyChange&)>;

/// Simulates changes in children, each of which tries one after the other until none is left: what one has worked out
/// about the machine serves the next. A change is left out where one that is milder fits.
class ChangeTrials {
 public:
  ChangeTrials(std::vector<StudyChange> changes, SimulateChange simulate);
  /// Ends what is under way.
  ~ChangeTrials();
  ChangeTrials(const ChangeTrials&) = delete;
  ChangeTrials& operator=(const ChangeTrials&) = delete;

  /// Begins in so many children, while this process does something else.
  void begin(int children);
  /// Goes on in so many, begun ones included. Of those changes with which the study fits: how long an iteration then
  /// takes, shortest first.
  std::vector<Remedy> finish(int children);

 private:
  class Shared;
  void try_all();
  void run(int children);

  std::vector<StudyChange> changes_;
  SimulateChange simulate_;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<class ForkPool> begun_;
  int begun_children_ = 0;
};

}  // namespace epocast
