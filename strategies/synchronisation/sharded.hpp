#pragma once
// Each replica owns a share of optimizer state, gradients and parameters: ZeRO (Rajbhandari et al. 2020), FSDP (Zhao et
// al. 2023).
//
// Stage 1 shards the optimizer's state: gradients are reduce-scattered when they are complete, each replica updates its
// share, and all-gathers spread the parameters before the next step. Stage 2 shards gradients too, so that they are
// reduce-scattered after every micro-batch. Stage 3 shards parameters too: they are gathered before each forward pass
// and, unless they are kept, again before each backward pass. Per replica and step of m micro-batches, of n bytes on d
// replicas: stage 1 moves 2 (d-1)/d n, stage 2 (m+1) (d-1)/d n, stage 3 3 m (d-1)/d n or, without resharding, (m+1)
// (d-1)/d n. With `shards: k` replicas in a row, such as those of a node, share one copy among k, and d/k copies are
// kept (FSDP's hybrid shard; MiCS, Zhang et al. 2022): k takes the place of d above, and each step adds an all-reduce
// of the shares, 2 (1 - k/d) n/k per replica, behind the last reduce-scatter. Gradients may be compressed: codes that
// cannot be summed on the way are exchanged all to all. What travels together is a unit of whole layers; `prefetch`
// units are gathered ahead of the one that computes. Without `overlap` gradients wait for the end of the backward pass,
// and what comes next waits for them; without `overlap_gathers` parameters are gathered between updates and the next
// step.

#include <optional>

#include "strategies/step/encoding.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

class Sharded final : public Synchronisation {
 public:
  static constexpr std::int64_t kAll = 0, kNode = -1;
  struct Settings {
    std::int64_t stage = 3;
    std::optional<Bytes> unit;  ///< none: by block
    std::int64_t prefetch = 1;
    bool reshard = true;
    std::int64_t shards = kAll;   ///< replicas that own one copy together
    bool overlap = true;          ///< of reduce-scatters with backward passes
    bool overlap_gathers = true;  ///< of all-gathers behind updates with updates and forward passes
  };

  explicit Sharded(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  static EntryInfo info();

 private:
  int shards_of(const ParameterPlace& place) const;

  ConfigNode options_;
  Settings settings_;
  Encoding compression_;
};

}  // namespace epocast
