#include "strategies/synchronisation/partial_gradients.hpp"

#include <algorithm>
#include <utility>

#include "strategies/step/options.hpp"
#include "strategies/step/piece.hpp"
#include "strategies/synchronisation/all_reduce.hpp"
#include "strategies/synchronisation/posted_place.hpp"

namespace epocast {
namespace {

using enum CollectiveOp;
using enum CollectiveAlgorithm;
using Gradients = PartialGradients::Gradients;
using Overlap = PartialGradients::Overlap;

/// Layer by layer, gradients summed everywhere.
AllReduce::Settings all_reduce_settings(Overlap overlap) {
  using enum AllReduce::UpdateTime;
  return {.rule = {.granularity = Granularity::unit},
          .overlap = overlap != Overlap::none,
          .update = overlap == Overlap::none       ? after_all
                    : overlap == Overlap::backward ? after_backward
                                                   : before_forward};
}

/// What is not summed everywhere, of one chunk of layers.
class PartialPlace final : public PostedPlace {
 public:
  PartialPlace(Gradients gradients, Overlap overlap, const ParameterPlace& place)
      : PostedPlace(place, overlap == Overlap::none),
        units_(make_pieces(trace(), {.granularity = Granularity::unit})),
        unit_at_(trace().layers.size()),
        gradients_(gradients),
        overlap_(overlap),
        inputs_(units_.size()),
        parameters_(units_.size()),
        first_use_(units_.size()) {
    std::ranges::reverse(units_);
    for (std::size_t u = 0; u < units_.size(); ++u) unit_at_[units_[u].layers.front()] = u;
  }

  bool makes_gradients(std::size_t layer) const override { return !unit_at_[layer] || !by_errors(*unit_at_[layer]); }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (!unit_at_[layer]) return;
    const std::size_t u = *unit_at_[layer];
    if (by_errors(u))
      wait_for(u, post(all_to_all, pairwise, input_bytes(layer), "activations", trace().layers[layer].name,
                       turn.micro_batch));
    if (turn.first) first_use_[u] = mark(trace().layers[layer].name);
  }

  void before_backward(std::size_t layer, const Turn& turn) override {
    if (unit_at_[layer] && by_errors(*unit_at_[layer]))
      wait_for(*unit_at_[layer], post(all_gather, ring, trace().layers[layer].output * replicas(), "errors",
                                      trace().layers[layer].name, turn.micro_batch));
  }

  void after_backward(std::size_t layer, const Turn& turn) override {
    if (!turn.last || !unit_at_[layer]) return;
    const std::size_t u = *unit_at_[layer];
    if (!by_errors(u))
      wait_for(u, post(adds_up_itself() ? all_to_all : reduce_scatter, own(pairwise), units_[u].gradients,
                       adds_up_itself() ? "gradients" : "", units_[u].name));
    if (overlap_ == Overlap::none) apply(u);
  }

  Lanes update(int /*step*/) override {
    if (overlap_ == Overlap::none) return ended(true);
    for (std::size_t u = 0; u < units_.size(); ++u) apply(u);
    if (overlap_ == Overlap::backward)
      for (const std::optional<TaskId>& parameters : parameters_) wait(parameters);
    return ended();
  }

  void tie() override {
    if (overlap_ != Overlap::next_forward) return;
    for (std::size_t u = 0; u < units_.size(); ++u) tie_to_next(parameters_[u], first_use_[u]);
  }

  StageSum stage_sum(std::size_t layer) const override {
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (std::ranges::binary_search(units_[u].layers, layer)) return {.after = inputs_[u]};
    return {};
  }

  void change(MemoryUse& use) const override {
    if (replicas() == 1) return;
    use.state_of(place().trace) -= place().optimizer_state() * (1 - 1 / replicas());
    if (!adds_up_itself()) return;
    Bytes received;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (by_errors(u))
        use.activations += trace().layers[units_[u].layers.front()].output * replicas();  // errors of the whole batch
      else
        received = std::max(received, units_[u].bytes);
    }
    use.gradients += received;
  }

 private:
  bool by_errors(std::size_t u) const {
    return gradients_ == Gradients::pcnn && trace().layers[units_[u].layers.front()].kind == LayerKind::fully_connected;
  }
  /// Else adding is the collective's.
  bool adds_up_itself() const { return gradients_ != Gradients::reduce_scatter; }
  /// Unless it calls those of the MPI library, whose algorithm is the study's.
  std::optional<CollectiveAlgorithm> own(CollectiveAlgorithm algorithm) const {
    return gradients_ == Gradients::all_to_all ? std::nullopt : std::optional(algorithm);
  }
  void wait_for(std::size_t u, std::optional<TaskId> posted) {
    if (posted) inputs_[u].push_back(*posted);
  }

  /// From a unit's summed gradient, or what it is computed from, to its new parameters.
  void apply(std::size_t u) {
    const ParameterPiece& unit = units_[u];
    for (const TaskId input : inputs_[u]) wait(input);
    if (by_errors(u))
      compute(whole_batch().layers[unit.layers.front()].times.backward_weights * (1 / replicas()), "gradient",
              unit.name);
    else if (adds_up_itself() && replicas() > 1)
      compute(sum_time(unit.gradients), "sum", unit.name);
    compute(unit.update / replicas(), "update", unit.name);
    parameters_[u] = post(all_gather, own(ring), unit.bytes, "parameters", unit.name);
  }

  std::vector<ParameterPiece> units_;                ///< in forward order
  std::vector<std::optional<std::size_t>> unit_at_;  ///< whose first layer it is, by layer
  Gradients gradients_;
  Overlap overlap_;
  // By unit.
  std::vector<std::vector<TaskId>> inputs_;        ///< what the gradient waits for
  std::vector<std::optional<TaskId>> parameters_;  ///< brings them
  std::vector<std::size_t> first_use_;             ///< mark of the pass that needs new parameters
};

}  // namespace

EntryInfo PartialGradients::info() {
  return {"partial_gradients",
          "layer by layer, hidden behind backward and next forward (PCL-DNN, Intel Caffe, Lee's pcnn)",
          {{"gradients", "", "all_reduce | reduce_scatter | all_to_all | pcnn", "all_reduce",
            "how gradients are summed, and who updates which parameters"},
           {"overlap", "", "none | backward | next_forward", "next_forward", "what communication may hide behind"}}};
}

PartialGradients::PartialGradients(const ConfigNode& options)
    : gradients_(choose(options, "gradients",
                        {{"all_reduce", Gradients::all_reduce},
                         {"reduce_scatter", Gradients::reduce_scatter},
                         {"all_to_all", Gradients::all_to_all},
                         {"pcnn", Gradients::pcnn}},
                        Gradients::all_reduce)),
      overlap_(
          choose(options, "overlap",
                 {{"none", Overlap::none}, {"backward", Overlap::backward}, {"next_forward", Overlap::next_forward}},
                 Overlap::next_forward)) {}

std::unique_ptr<PlaceSynchronisation> PartialGradients::at(const ParameterPlace& place) const {
  if (gradients_ == Gradients::all_reduce) return AllReduce(all_reduce_settings(overlap_)).at(place);
  return std::make_unique<PartialPlace>(gradients_, overlap_, place);
}

}  // namespace epocast
