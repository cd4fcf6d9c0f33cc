#include "learning/stage_versions.hpp"

#include <algorithm>

namespace epocast::learning {

StageVersions::StageVersions(std::vector<std::pair<std::size_t, std::size_t>> ranges, const Values& initial,
                             std::size_t workers)
    : size_(initial.size()), workers_(workers) {
  for (const auto& range : ranges) {
    stages_.push_back({.range = range, .versions = {}, .updates = {}});
    add(stages_.size() - 1, initial);
  }
}

void StageVersions::add(std::size_t stage, const Values& parameters) {
  const auto [begin, end] = stages_[stage].range;
  stages_[stage].versions.emplace_back(parameters.begin() + static_cast<std::ptrdiff_t>(begin),
                                       parameters.begin() + static_cast<std::ptrdiff_t>(end));
}

void StageVersions::note(Passes& passes, std::size_t stage, std::size_t device) {
  std::vector<std::int64_t>& updates = stages_[stage].updates;
  if (updates.size() <= device) updates.resize(device + 1, 0);
  passes.resize(stages_.size());
  if (passes[stage].size() <= device) passes[stage].resize(device + 1, -1);
  passes[stage][device] = updates[device];
}

void StageVersions::begin_forward(std::int64_t batch, std::size_t stage, std::size_t device) {
  note(batches_[batch].forward, stage, device);
}

void StageVersions::begin_backward(std::int64_t batch, std::size_t stage, std::size_t device) {
  note(batches_[batch].backward, stage, device);
}

Values StageVersions::weights(const Batch& batch, std::size_t worker, bool backward) const {
  Values out(size_, 0);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    const std::size_t device = worker * std::max<std::size_t>(1, stage.updates.size()) / workers_;
    const auto version = [&](const Passes& passes) -> std::int64_t {
      return s < passes.size() && device < passes[s].size() ? passes[s][device] : -1;
    };
    std::int64_t number = backward ? version(batch.backward) : -1;
    if (number < 0) number = version(batch.forward);
    const Values& from = stage.versions[static_cast<std::size_t>(number - stage.oldest)];
    std::ranges::copy(from, out.begin() + static_cast<std::ptrdiff_t>(stage.range.first));
  }
  return out;
}

Values StageVersions::forward_weights(std::int64_t batch, std::size_t worker) const {
  return weights(batches_.at(batch), worker, false);
}

Values StageVersions::backward_weights(std::int64_t batch, std::size_t worker) const {
  return weights(batches_.at(batch), worker, true);
}

bool StageVersions::update(std::size_t stage, std::size_t device) {
  std::vector<std::int64_t>& updates = stages_[stage].updates;
  if (updates.size() <= device) updates.resize(device + 1, 0);
  return ++updates[device] > stages_[stage].newest();
}

void StageVersions::forget(std::int64_t batch) {
  batches_.erase(batch);
  drop_unused();
}

void StageVersions::drop_unused() {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    std::int64_t needed = stage.newest();
    for (const std::int64_t has : stage.updates) needed = std::min(needed, has);
    for (const auto& [number, batch] : batches_)
      for (const Passes* passes : {&batch.forward, &batch.backward})
        if (s < passes->size())
          for (const std::int64_t version : (*passes)[s])
            if (version >= 0) needed = std::min(needed, version);
    for (; stage.oldest < needed; ++stage.oldest) stage.versions.pop_front();
  }
}

std::size_t StageVersions::kept() const {
  std::size_t count = 0;
  for (const Stage& stage : stages_) count += stage.versions.size();
  return count;
}

}  // namespace epocast::learning
