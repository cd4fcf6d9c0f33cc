// What Replay does with the events of pipelines.

#include <algorithm>

#include "learning/replay.hpp"

namespace epocast::learning {

/// The first device of a stage has the sum of all its devices' gradients and steps by their mean; the others do the
/// same.
void Replay::update_stage(const ParameterEvent& event) {
  if (!batches_.contains(event.iteration) || settings_.scheme.current_weights) compute_batch(event.iteration);
  auto& [gradient, updated] = batches_.at(event.iteration);
  const auto [begin, end] = range(event.piece);
  server_.step(centre_, begin, std::span<const double>(gradient).subspan(begin, end - begin), rate());
  stages_->add(static_cast<std::size_t>(event.piece), centre_);
  if (++updated < phase_.log->pieces.size()) return;
  batches_.erase(event.iteration);
  stages_->forget(event.iteration);
  changed_ = whole_ = true;
}

/// The mean gradient of a batch. Of weights as they have become meanwhile it is that of the stages up to the last whose
/// backward pass has begun, which are those that can be updated now.
void Replay::compute_batch(std::int64_t iteration) {
  const auto [at, is_new] = batches_.try_emplace(iteration);
  if (is_new) {
    samples_ += phase_.log->workers * phase_.worker_batch;
    bytes_ += phase_.bytes_per_iteration;
  }
  Values& gradient = at->second.first;
  gradient.assign(centre_.size(), 0);
  scratch_.resize(centre_.size());
  positions_.resize(static_cast<std::size_t>(phase_.worker_batch));
  for (std::int32_t w = 0; w < phase_.log->workers; ++w) {
    const std::int64_t first = start_samples_ + (iteration * phase_.log->workers + w) * phase_.worker_batch;
    for (std::int64_t k = 0; k < phase_.worker_batch; ++k) positions_[static_cast<std::size_t>(k)] = first + k;
    const Values forward = stages_->forward_weights(iteration, static_cast<std::size_t>(w));
    if (settings_.scheme.current_weights)
      problem_.gradient_of_passes(forward, stages_->backward_weights(iteration, static_cast<std::size_t>(w)),
                                  positions_, scratch_);
    else
      problem_.gradient(forward, positions_, scratch_);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += scratch_[i] / phase_.log->workers;
  }
}

}  // namespace epocast::learning
