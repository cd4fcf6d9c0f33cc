#pragma once
// Gradients are summed over all replicas by all-reduce, and every replica updates all its parameters.
//
// Scope: what one all-reduce carries is a PieceRule (PyTorch DDP, Horovod); it starts as soon as its gradients are
// there, or after the backward pass, with others that wait if it fuses (Horovod), and then nothing hides it unless
// updates may start before. A communication queue per device carries out one operation at a time: first ready first
// served, or the layer that the next forward pass needs first (Jayarajan et al. 2019, "Priority-based parameter
// propagation"; Peng et al. 2019, ByteScheduler; without cutting tensors). Updates follow when all gradients are there,
// or each layer's when its own are (which hides late communication behind updates), or each waits until its layer's
// next forward pass, so that communication hides there too (Das et al. 2016). Gradients may be compressed. Limits:
// communication takes no compute time away. Where layers of a stage are computed as one (pipelines), so are updates.

#include "strategies/step/encoding.hpp"
#include "strategies/step/piece.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

class AllReduce final : public Synchronisation {
 public:
  /// When the optimizer may start.
  enum class UpdateTime {
    after_all,       ///< when the gradients of all layers are there
    after_backward,  ///< after the backward pass, layer by layer as gradients come
    before_forward,  ///< of a layer just before its next forward pass
  };
  struct Settings {
    PieceRule rule;
    int at_once = 1;      ///< all-reduces under way at a time
    bool overlap = true;  ///< all-reduces start during the backward pass
    Discipline order = Discipline::fifo;
    UpdateTime update = UpdateTime::after_backward;
  };

  explicit AllReduce(const ConfigNode& options);
  /// For strategies that are such settings.
  explicit AllReduce(const Settings& settings) : settings_(settings) {}
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  static EntryInfo info();

 private:
  Settings settings_;
  Encoding compression_;
};

}  // namespace epocast
