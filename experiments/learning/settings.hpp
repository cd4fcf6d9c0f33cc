#pragma once
// The `learning` block of a study: what is learned, by which rule, until when.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/learning/convergence.hpp"
#include "learning/compression.hpp"
#include "learning/problem.hpp"
#include "learning/rate.hpp"
#include "learning/replay.hpp"
#include "sim/config.hpp"

namespace epocast {

struct BatchDoubling;
struct PhaseSettings;

struct LearningSettings {
  std::optional<Convergence> given = {};  ///< epochs to the target; then nothing is trained, and the rest is not read
  std::string problem;
  learning::ProblemOptions options;
  learning::Scheme scheme;
  learning::OptimizerSettings optimizer;
  learning::Compression compression;
  learning::RateRule rate;
  learning::StopRule stop;
  double elasticity = 0.9;
  double mixing = 0.5;
  double evaluations = 1;              ///< in an epoch
  std::optional<std::int64_t> epochs;  ///< of the problem's samples; absent: as many as the phase has of the data set
  int seeds = 1;                       ///< of what is drawn: data, order, first parameters
  Location place;
  std::shared_ptr<const BatchDoubling> adaptive = {};  ///< phases that learning decides; null: they are given

  /// For the replay.
  learning::ReplaySettings replay() const;
};

/// Throws ConfigError for what cannot be, such as a strategy whose effect on parameters is not known, or a batch larger
/// than the problem's epoch. `options`: the strategy's.
std::shared_ptr<const LearningSettings> read_learning(const ConfigNode& node, const std::string& strategy,
                                                      const ConfigNode& options,
                                                      const std::vector<PhaseSettings>& phases,
                                                      std::shared_ptr<const BatchDoubling> adaptive);

}  // namespace epocast
