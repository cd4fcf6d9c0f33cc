#pragma once
// The weights of a pipeline's stages, in the versions that batches under way still need.

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "learning/problem.hpp"

namespace epocast::learning {

/// A batch goes through stages that have been updated more or less often since it entered the pipeline: its gradient is
/// that of weights put together from as many versions. Every device of a stage has a copy, whose versions its own
/// updates count.
class StageVersions {
 public:
  /// `ranges`: of each stage's weights in all parameters. `workers`: into how many equal shares a batch is divided at
  /// most; a stage with fewer devices takes neighbouring shares together.
  StageVersions(std::vector<std::pair<std::size_t, std::size_t>> ranges, const Values& initial, std::size_t workers);

  /// A device begins a batch's forward pass at a stage, or its backward pass.
  void begin_forward(std::int64_t batch, std::size_t stage, std::size_t device);
  void begin_backward(std::int64_t batch, std::size_t stage, std::size_t device);
  /// What a share of the batch goes through forward: each stage's weights as they were when its pass began there; or
  /// backward, where no pass has begun yet as forward. REQUIRES: every stage has begun the batch's forward pass.
  Values forward_weights(std::int64_t batch, std::size_t worker) const;
  Values backward_weights(std::int64_t batch, std::size_t worker) const;

  /// A device has updated its copy. True if it is the first of its stage, so that the version has to be given by add().
  bool update(std::size_t stage, std::size_t device);
  /// The newest version of a stage: its range of `parameters`.
  void add(std::size_t stage, const Values& parameters);
  /// Nobody asks for this batch any more.
  void forget(std::int64_t batch);
  /// Versions that are kept, of all stages.
  std::size_t kept() const;

 private:
  struct Stage {
    std::pair<std::size_t, std::size_t> range;
    std::deque<Values> versions;
    std::int64_t oldest = 0;            ///< number of the first of them
    std::vector<std::int64_t> updates;  ///< by device: the number of the version that it has
    std::int64_t newest() const { return oldest + static_cast<std::int64_t>(versions.size()) - 1; }
  };
  /// By stage and device; -1: not begun.
  using Passes = std::vector<std::vector<std::int64_t>>;
  struct Batch {
    Passes forward, backward;
  };

  void note(Passes& passes, std::size_t stage, std::size_t device);
  Values weights(const Batch& batch, std::size_t worker, bool backward) const;
  void drop_unused();

  std::vector<Stage> stages_;
  std::size_t size_, workers_;
  std::map<std::int64_t, Batch> batches_;
};

}  // namespace epocast::learning
