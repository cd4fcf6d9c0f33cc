#include "sim/memory_timeline.hpp"

#include <algorithm>
#include <cassert>

namespace epocast {
namespace {

constexpr int kNone = -1;

enum class Purpose { activation, gradient };

/// A piece of memory, alive from the first to the last step that touches it.
struct Buffer {
  Bytes bytes;
  Purpose purpose = Purpose::activation;
  std::size_t layer = 0;  ///< whose output, inner values or gradient it holds
  std::size_t first = 0, last = 0;
  std::size_t forward_last = 0, backward_first = 0;  ///< of what backward reads again
  bool touched = false;
};

struct MemoryStep {
  Pass pass = Pass::forward;
  std::size_t layer = 0;
};

/// The passes of a range of layers with the memory that each touches.
class Program {
 public:
  Program(const WorkloadTrace& trace, std::size_t first, std::size_t last)
      : layers_(trace.layers),
        first_(first),
        last_(last),
        output_(layers_.size(), kNone),
        inner_(output_),
        gradient_(output_) {
    for (std::size_t l = first_; l <= last_; ++l) forward(l, Pass::forward);
    forward_end_ = steps_.size();
    for (std::size_t l = last_ + 1; l-- > first_;) {
      const int segment = layers_[l].segment;
      if (segment >= 0 && (l == last_ || layers_[l + 1].segment != segment)) recompute_segment(l);
      if (layers_[l].needs_gradient) backward(l);
    }
    for (std::size_t l = first_; l <= last_; ++l)
      if (layers_[l].parameters.value > 0) steps_.push_back({Pass::update, l});
  }

  const std::vector<MemoryStep>& steps() const { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  /// Whether a buffer stays in memory from forward to backward.
  bool is_kept(const Buffer& b) const {
    return b.purpose == Purpose::activation && b.first < forward_end_ && b.last >= forward_end_;
  }

 private:
  std::size_t storage(std::size_t layer) const {
    const int in = layers_[layer].stored_in;
    return in >= 0 ? static_cast<std::size_t>(in) : layer;
  }

  int make(Bytes bytes, Purpose purpose, std::size_t layer) {
    buffers_.push_back({.bytes = bytes, .purpose = purpose, .layer = layer});
    owners_.push_back(0);
    return static_cast<int>(buffers_.size()) - 1;
  }
  /// The current step, the last of steps_, touches a buffer.
  void touch(int buffer) {
    Buffer& b = buffers_[static_cast<std::size_t>(buffer)];
    const std::size_t now = steps_.size() - 1;
    if (!b.touched) b.first = now;
    b.touched = true;
    b.last = now;
    if (forward_end_ == 0)
      b.forward_last = now;
    else if (b.backward_first == 0)
      b.backward_first = now;
  }

  int output_of(std::size_t layer) {
    const std::size_t in = storage(layer);
    if (output_[in] == kNone) output_[in] = make(layers_[in].output, Purpose::activation, in);
    return output_[in];
  }
  void touch_inputs(std::size_t layer) {
    for (const int input : layers_[layer].inputs) touch(output_of(static_cast<std::size_t>(input)));
  }

  void forward(std::size_t l, Pass pass) {
    steps_.push_back({pass, l});
    touch_inputs(l);
    touch(output_of(l));
    if (layers_[l].inner.value <= 0) return;
    inner_[l] = make(layers_[l].inner, Purpose::activation, l);
    touch(inner_[l]);
  }

  /// The forward pass of the segment that ends with layer `end`, once more and into memory of its own: what other
  /// segments read of it is still there for them, and is let go when they have read it.
  void recompute_segment(std::size_t end) {
    std::size_t begin = end;
    while (begin > first_ && layers_[begin - 1].segment == layers_[end].segment) --begin;
    for (std::size_t l = begin; l <= end; ++l) output_[l] = kNone;
    for (std::size_t l = begin; l <= end; ++l) forward(l, Pass::recompute);
  }

  void backward(std::size_t l) {
    const LayerTrace& layer = layers_[l];
    steps_.push_back({Pass::backward, l});
    if (layer.backward_reads_input) touch_inputs(l);
    // The loss reads the last layer's output.
    if (layer.backward_reads_output || l + 1 == layers_.size()) touch(output_of(l));
    if (inner_[l] != kNone) touch(inner_[l]);

    if (gradient_[l] == kNone) {  // of the loss, or received from the next stage
      gradient_[l] = make(layer.output, Purpose::gradient, l);
      ++owners(gradient_[l]);
    }
    const int own = gradient_[l];
    touch(own);
    --owners(own);
    for (const int input : layer.inputs) hand_on(l, static_cast<std::size_t>(input), own);
  }

  /// Gives the input its part of the gradient, made by layer `l` from its own gradient.
  void hand_on(std::size_t l, std::size_t input, int own) {
    if (!layers_[input].needs_gradient) return;
    const LayerTrace& layer = layers_[l];
    const bool unchanged = layer.kind == LayerKind::add || layer.kind == LayerKind::flatten;
    const bool in_place = layer.stored_in >= 0 && owners(own) == 0;
    int& total = gradient_[input];
    if (total == kNone) {
      total = unchanged || in_place ? own : make(layers_[input].output, Purpose::gradient, input);
      touch(total);
      ++owners(total);
      return;
    }
    // A further part, made beside the sum unless it is there already. The sum may be somebody else's too: then a new
    // one is written.
    if (!unchanged) touch(make(layers_[input].output, Purpose::gradient, input));
    touch(total);
    if (owners(total) == 1) return;
    --owners(total);
    total = make(layers_[input].output, Purpose::gradient, input);
    touch(total);
    ++owners(total);
  }

  /// Layers whose gradient, not yet read by their backward pass, lies in a buffer.
  int& owners(int buffer) { return owners_[static_cast<std::size_t>(buffer)]; }

  const std::vector<LayerTrace>& layers_;
  std::size_t first_, last_, forward_end_ = 0;
  std::vector<int> output_, inner_, gradient_;  ///< by layer, the latest buffer
  std::vector<int> owners_;                     ///< by buffer
  std::vector<Buffer> buffers_;
  std::vector<MemoryStep> steps_;
};

MemoryUse resident(const WorkloadTrace& trace, Optimizer optimizer, const StageRange& stage) {
  Bytes parameters, gradients, frozen;
  for (std::size_t l = stage.first; l <= stage.last; ++l) {
    parameters += trace.layers[l].parameters;
    gradients += trace.layers[l].gradient_bytes();
    frozen += trace.layers[l].frozen;
  }
  MemoryUse use{.parameters = parameters * stage.weight_versions + frozen,
                .gradients = gradients,
                .passing = parameters * (stage.weight_versions - 1)};
  use.state_of(trace) = parameters * optimizer_share(optimizer, trace);
  return use;
}

}  // namespace

const char* to_string(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::recompute: return "recompute";
    case Pass::backward: return "backward";
    case Pass::update: return "update";
  }
  return "";
}

std::vector<MemoryMoment> memory_timeline(const WorkloadTrace& trace, Optimizer optimizer, const StageRange& stage) {
  assert(stage.first <= stage.last && stage.last < trace.layers.size());
  assert(stage.in_flight >= 1 && stage.weight_versions >= 1);
  const Program program(trace, stage.first, stage.last);
  MemoryUse use = resident(trace, optimizer, stage);
  std::vector<std::vector<const Buffer*>> begin(program.steps().size()), end(program.steps().size());
  Bytes away;                                                   // of what is offloaded, that nobody reads at the moment
  std::vector<Bytes> leaves(begin.size()), back(begin.size());  // after and before a step
  for (const Buffer& buffer : program.buffers()) {
    if (!buffer.touched) continue;
    begin[buffer.first].push_back(&buffer);
    end[buffer.last].push_back(&buffer);
    if (!program.is_kept(buffer)) continue;
    use.activations += buffer.bytes * (stage.in_flight - 1);
    if (!(trace.staging.value > 0) || buffer.layer == 0) continue;
    use.on_host += buffer.bytes * stage.in_flight;
    use.passing += buffer.bytes * stage.in_flight;
    away += buffer.bytes * (stage.in_flight - 1);
    leaves[buffer.forward_last] += buffer.bytes;
    back[buffer.backward_first] += buffer.bytes;
  }
  std::vector<MemoryMoment> timeline;
  timeline.reserve(program.steps().size());
  for (std::size_t s = 0; s < program.steps().size(); ++s) {
    const MemoryStep& step = program.steps()[s];
    const auto of = [&](const Buffer& b) -> Bytes& {
      return b.purpose == Purpose::gradient ? use.activation_gradients : use.activations;
    };
    for (const Buffer* b : begin[s]) of(*b) += b->bytes;
    away -= back[s];
    use.workspace = step.pass == Pass::update ? Bytes(0) : trace.layers[step.layer].workspace;
    timeline.push_back({step.pass, step.layer, use});
    timeline.back().use.activations -= std::max(Bytes(0), away - trace.staging);
    away += leaves[s];
    for (const Buffer* b : end[s]) of(*b) -= b->bytes;
  }
  return timeline;
}

std::vector<MemoryMoment> memory_timeline(const WorkloadTrace& trace, Optimizer optimizer) {
  return memory_timeline(trace, optimizer, {.first = 0, .last = trace.layers.size() - 1});
}

Bytes kept_of_received(const WorkloadTrace& trace, std::size_t first, std::size_t last) {
  const Program program(trace, first, last);
  Bytes kept;
  for (const Buffer& buffer : program.buffers())
    if (buffer.touched && buffer.layer < first && program.is_kept(buffer)) kept += buffer.bytes;
  return kept;
}

std::vector<Bytes> kept_by_layer(const WorkloadTrace& trace) {
  const Program program(trace, 0, trace.layers.size() - 1);
  std::vector<Bytes> kept(trace.layers.size());
  for (const Buffer& buffer : program.buffers())
    if (buffer.touched && program.is_kept(buffer)) kept[buffer.layer] += buffer.bytes;
  return kept;
}

}  // namespace epocast
