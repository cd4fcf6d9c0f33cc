#pragma once
// "Parallel CNN" of Lee 2020, chapter 3 (Algorithm 2): data parallelism that sums all gradients in two all-reduces, and
// computes those of large fully connected layers on every replica instead of summing them.
//
// The first chunk holds the gradients of the last `k` layers, and is posted as soon as they are there; the second holds
// the rest, and is posted after the backward pass. Layers are counted from the output; convolutions, fully connected
// layers and pooling count, as in the paper (16 for VGG-A). The update of the second chunk's layers waits for it.
// The first `f` fully connected layers are left out of the chunks: their input activations are gathered from all
// replicas during the forward pass, their errors after it, (N' + N) K values instead of N N' to be reduced (3.3.3).
// Every replica then computes the whole batch's gradient and updates these layers in the next step, just before their
// forward pass. 2 f + 2 communications a step (3.3.2), one at a time, first posted first served. In a pipeline each
// stage has what it holds of the two chunks.
//
// Scope: any network; `f` counts layers of kind fully_connected. The gathers are rings, the all-reduces what the study
// says. With all counted layers in the first chunk (k at its largest) there is no second one; a chunk without gradients
// is not sent. Limits: the gradient of the whole batch takes one worker's backward_weights time at the global batch
// size. Algorithm 2 as printed covers layers s to s+f inclusive; the text's f layers are meant here. The wait for the
// second chunk stands before its own first update. Memory: gathered activations and errors of f layers are added.
// Validation: tests/unit/two_chunk_data_parallel_test.cpp (timelines by hand); `epocast reproduce lee2020/chapter3`.

#include "strategies/step/synchronisation.hpp"

namespace epocast {

class TwoChunks final : public Synchronisation {
 public:
  explicit TwoChunks(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int /*replicas*/) const override { return {.one_version = true, .data_only = true}; }
  static EntryInfo info();

 private:
  ConfigNode options_;
  int first_chunk_layers_;  ///< k
  int replicated_layers_;   ///< f
};

}  // namespace epocast
