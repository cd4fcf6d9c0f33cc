#include "strategies/synchronisation/two_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/synchronisation/posted_place.hpp"

namespace epocast {
namespace {

using enum CollectiveOp;
using enum CollectiveAlgorithm;

/// Which of a trace's layers do what.
struct Roles {
  std::size_t first_chunk = 0;   ///< this layer and all after it
  std::vector<bool> replicated;  ///< by layer
};

bool counts(LayerKind kind) { return multiplies_weights(kind) || kind == LayerKind::pooling; }

Roles assign_roles(const WorkloadTrace& trace, int k, int f, const ConfigNode& options) {
  Roles roles;
  roles.replicated.resize(trace.layers.size(), false);
  int counted = 0, fully_connected = 0;
  for (std::size_t l = trace.layers.size(); l-- > 0;)
    if (counts(trace.layers[l].kind) && ++counted == k) roles.first_chunk = l;
  if (counted < k)
    throw options.at("k").error(fmt::format(
        "{} layers in the first chunk, but '{}' has {} that count (with weights, and pooling); set k to at most {}", k,
        trace.model, counted, counted));
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    if (trace.layers[l].kind == LayerKind::fully_connected && ++fully_connected <= f)
      roles.replicated[l] = !trace.layers[l].gradients.empty();  // frozen layers have none
  if (fully_connected < f)
    throw options.at("f").error(
        fmt::format("{} replicated layers, but '{}' has {} fully connected; set f to at most {}", f, trace.model,
                    fully_connected, fully_connected));
  return roles;
}

class TwoChunkPlace final : public PostedPlace {
 public:
  TwoChunkPlace(const ParameterPlace& place, Roles roles)
      : PostedPlace(place, false),
        roles_(std::move(roles)),
        first_chunk_(std::clamp(roles_.first_chunk, place.chunk.first, place.chunk.last)) {
    for (std::size_t l = place.chunk.first; l < place.chunk.last; ++l)
      if (roles_.replicated[l]) gathered_.push_back({.layer = l});
  }

  bool makes_gradients(std::size_t layer) const override { return !roles_.replicated[layer]; }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (!roles_.replicated[layer]) return;
    Gathered& own = *std::ranges::find(gathered_, layer, &Gathered::layer);
    own.posted.push_back(post(all_gather, ring, input_bytes(layer) * replicas(), "activations",
                              trace().layers[layer].name, turn.micro_batch));
    if (!turn.first) return;
    own.delayed_update = mark(trace().layers[layer].name);
    compute(whole_batch().layers[layer].times.backward_weights, "gradient", trace().layers[layer].name);
    compute(trace().layers[layer].times.update, "update", trace().layers[layer].name);
  }

  void after_backward(std::size_t layer, const Turn& turn) override {
    if (turn.last && layer == first_chunk_) first_ = post_chunk(layer, place().chunk.last, "chunk 1");
  }

  Lanes update(int /*step*/) override {
    second_ = post_chunk(place().chunk.first, first_chunk_, "chunk 2");
    wait(first_);
    if (first_chunk_ == place().chunk.last) after_first_chunk();
    for (std::size_t l = place().chunk.last; l-- > place().chunk.first;) {
      if (!roles_.replicated[l]) compute(trace().layers[l].times.update, "update", trace().layers[l].name);
      if (l == first_chunk_) after_first_chunk();
    }
    return ended();
  }

  void tie() override {
    for (const Gathered& own : gathered_)
      for (const std::optional<TaskId>& posted : own.posted) tie_to_next(posted, own.delayed_update);
  }

  StageSum stage_sum(std::size_t layer) const override {
    const std::optional<TaskId> posted = layer < first_chunk_ ? second_ : first_;
    return posted && !roles_.replicated[layer] ? StageSum{.after = {*posted}} : StageSum{};
  }

  void change(MemoryUse& use) const override {
    for (const Gathered& own : gathered_)
      use.activations += (input_bytes(own.layer) + trace().layers[own.layer].output) * replicas();
  }

 private:
  struct Gathered {
    std::size_t layer = 0;
    std::vector<std::optional<TaskId>> posted = {};  ///< what its gradient is computed from
    std::size_t delayed_update = 0;                  ///< mark of the pass before which that is
  };

  std::optional<TaskId> post_chunk(std::size_t first, std::size_t last, const char* name) {
    Bytes bytes;
    for (std::size_t l = first; l < last; ++l)
      if (!roles_.replicated[l])
        for (const GradientTensor& gradient : trace().layers[l].gradients) bytes += gradient.bytes;
    return post(all_reduce, place().context.collective.algorithm, bytes, "", name);
  }

  void after_first_chunk() {
    wait(second_);
    for (Gathered& own : gathered_)
      own.posted.push_back(post(all_gather, ring, trace().layers[own.layer].output * replicas() * place().micro_batches,
                                "errors", trace().layers[own.layer].name));
  }

  Roles roles_;
  std::size_t first_chunk_;  ///< of the place's layers
  std::vector<Gathered> gathered_;
  std::optional<TaskId> first_, second_;  ///< of the chunks
};

}  // namespace

EntryInfo TwoChunks::info() {
  return {"two_chunks",
          "two all-reduces, and replicated gradients of fully connected layers (Lee 2020)",
          {{"k", "layers", ">= 1", "required", "layers in the first chunk, from the output on, pooling included"},
           {"f", "layers", ">= 0", "0", "fully connected layers whose gradients every worker computes itself"}}};
}

TwoChunks::TwoChunks(const ConfigNode& options)
    : options_(options),
      first_chunk_layers_(static_cast<int>(options.at("k").as_int(Range{1, 1e6}))),
      replicated_layers_(static_cast<int>(options.get("f", 0, Range{0, 1e6}))) {}

std::unique_ptr<PlaceSynchronisation> TwoChunks::at(const ParameterPlace& place) const {
  return std::make_unique<TwoChunkPlace>(place,
                                         assign_roles(place.trace, first_chunk_layers_, replicated_layers_, options_));
}

}  // namespace epocast
