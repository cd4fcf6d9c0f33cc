#pragma once
// Gradients are summed layer by layer, each replica updates a part of what it has, and communication may last into the
// next forward pass.
//
// `gradients` says how a layer's gradients are summed over P replicas and applied:
//   all_reduce      summed everywhere, every replica updates all: all_reduce with a layer per all-reduce and `update:
//                   after_all`, `after_backward` or `before_forward`;
//   reduce_scatter  each replica gets the sum of 1/P, updates that part, and all_gather spreads it (Intel Caffe; Lee
//                   2020, 4.3); as many bytes as all_reduce;
//   all_to_all      the same, but each gets P parts by all_to_all and sums them by all of its threads (Lee 2020,
//                   5.2.2);
//   pcnn            Lee 2020, 4.1. Fully connected: activations are scattered by all_to_all, errors gathered, each
//                   replica computes N x N'/P of the whole batch's gradient, updates it, and all_gather spreads the
//                   parameters (equations 4.2 to 4.4). Other layers: all_to_all of gradients, the P parts summed by all
//                   threads, a local update of 1/P, all_gather (equation 4.9).
// `overlap` says what communication may hide behind:
//   none          nothing: the main thread waits where it posts (allreduce_no_overlap and pcnn_no_overlap in 4.5.4), of
//                 an all_reduce after the backward pass, which takes as long;
//   backward      the rest of the backward pass and updates; all of it ends before the next forward pass;
//   next_forward  also the next forward pass, up to the layer that needs the new parameters. With all_reduce this is
//                 PCL-DNN (Das et al. 2016, arXiv 1602.06709; DP+Overlap in Lee's chapter 3, allreduce in chapter 4).
// Sums, partial gradients, sharded updates and all_gathers come after the backward pass in forward order (4.4.1), so
// that what the next forward pass needs first is sent first. One communication at a time, first posted first served.
//
// Scope: any network. Parameters of a normalisation travel with the convolution before it. With `gradients: all_reduce`
// and `all_to_all` collectives are carried out by the study's collective.algorithm; else all_to_all and reduce_scatter
// by pairwise exchange, all_gather by a ring (table 4.1). Limits: a partial gradient takes 1/P of one worker's time for
// the whole batch's; a sum reads n bytes and writes n/P at the device's memory bandwidth; a sharded update takes 1/P of
// the whole one. Memory: gathered errors of fully connected layers and the largest layer's received gradients are
// added; the optimizer's state is sharded where updates are. Validation: tests/unit/layerwise_data_parallel_test.cpp
// (timelines by hand), tests/published/lee2020_equations_test.cpp (bytes and times of equations 4.2 to 4.9).

#include "strategies/step/synchronisation.hpp"

namespace epocast {

class PartialGradients final : public Synchronisation {
 public:
  explicit PartialGradients(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int /*replicas*/) const override { return {.one_version = true, .data_only = true}; }
  static EntryInfo info();

  enum class Gradients { all_reduce, reduce_scatter, all_to_all, pcnn };
  enum class Overlap { none, backward, next_forward };

 private:
  Gradients gradients_;
  Overlap overlap_;
};

}  // namespace epocast
