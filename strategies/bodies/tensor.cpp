#include "strategies/bodies/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/bodies/layer_part.hpp"

namespace epocast {
namespace {

/// How a tensor between layers lies on a team.
enum class Spread {
  whole,      ///< the same on every device
  channels,   ///< each device has some of the channels
  positions,  ///< each device has some of the positions
};

class TensorDivision {
 public:
  TensorDivision(DividedModel divided, int parts, bool by_positions, bool gather_again, bool overlap,
                 const ConfigNode& place)
      : divided_(std::move(divided)),
        model_(*divided_.part),
        parts_(parts),
        by_positions_(by_positions),
        gather_again_(gather_again),
        overlap_(overlap),
        place_(place),
        part_(std::make_shared<Model>(model_)),
        exchanges_(divided_.exchanges),
        spread_(model_.layers.size(), Spread::whole),
        padding_(model_.layers.size(), 1),
        entered_(model_.layers.size(), false),
        readers_(model_.layers.size()) {
    for (std::size_t l = 0; l < model_.layers.size(); ++l)
      for (const int input : model_.layers[l].inputs) readers_[at(input)].push_back(l);
  }

  DividedModel divide() {
    for (std::size_t l = 0; l < model_.layers.size(); ++l) divide_layer(l);
    if (!any_)
      throw place_.error(
          fmt::format("{} has no layer that tensor parallelism divides; leave the tensor axis out", model_.name));
    for (std::size_t l = 0; l < spread_.size(); ++l) divided_.shared[l] = spread_[l] == Spread::whole;
    divided_.exchanges = std::move(exchanges_);
    DividedModel out = std::move(divided_);
    out.part = std::move(part_);
    return out;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Layer& whole(std::size_t l) const { return model_.layers[l]; }
  Layer& part(std::size_t l) { return part_->layers[l]; }
  std::int64_t share(std::int64_t n) const { return largest_share(n, parts_); }
  /// Of n with padding.
  std::int64_t share(std::int64_t n, double padding) const {
    return share(padding == 1 ? n : std::llround(std::ceil(static_cast<double>(n) * padding - 1e-6)));
  }
  /// Says that so many of something are padded, once.
  void note_padding(std::int64_t n, const char* what) {
    if (n % parts_ == 0) return;
    std::string note = fmt::format("{} {}, which a tensor axis of {} does not divide, are padded to {}", n, what,
                                   parts_, share(n) * parts_);
    if (std::ranges::find(divided_.notes, note) == divided_.notes.end()) divided_.notes.push_back(std::move(note));
  }

  /// Heads of an attention: of queries, and of keys or values.
  struct Heads {
    std::int64_t queries, shared;
    explicit Heads(const Layer& layer)
        : queries(std::max(layer.heads, 1)), shared(layer.kv_heads > 0 ? layer.kv_heads : queries) {}
    Heads(std::int64_t of_queries, std::int64_t of_others) : queries(of_queries), shared(of_others) {}
    /// In its only input.
    std::int64_t stacked() const { return queries + 2 * shared; }
  };
  /// Of a device: padded, and of keys and values at least one, so that fewer than devices are copied.
  Heads share(const Heads& heads) const { return {share(heads.queries), share(heads.shared)}; }

  /// Of the columns of a product: where an attention reads them, directly or through others, whole heads are.
  double column_padding(std::size_t l) const {
    for (const std::size_t reader : readers_[l]) {
      const Layer& layer = whole(reader);
      if (layer.kind == LayerKind::attention) {
        const Heads all(layer), own = share(all);
        if (layer.inputs.size() == 1) return ratio(parts_ * own.stacked(), all.stacked());
        return at(layer.inputs.front()) == l ? ratio(parts_ * own.queries, all.queries)
                                             : ratio(parts_ * own.shared, all.shared);
      }
      const bool passes_on = goes_by_channel(layer) || adds_adapter(layer);
      if (const double padding = passes_on ? column_padding(reader) : 1; padding != 1) return padding;
    }
    return 1;
  }

  static bool is_product(const Layer& layer) {
    return layer.kind == LayerKind::linear || layer.kind == LayerKind::fully_connected;
  }
  static bool goes_by_channel(const Layer& layer) {
    return layer.kind == LayerKind::activation || layer.kind == LayerKind::dropout || layer.kind == LayerKind::multiply;
  }

  bool adds_adapter(const Layer& layer) const {
    return layer.kind == LayerKind::add &&
           std::ranges::any_of(layer.inputs, [&](int input) { return whole(at(input)).variant == "adapter"; });
  }

  /// Whether a layer can go on with some of the channels.
  bool takes_channels(std::size_t l) const {
    const Layer& layer = whole(l);
    if (is_product(layer)) return true;
    if (layer.kind == LayerKind::attention) return layer.parameters.empty();
    if (layer.kind == LayerKind::softmax) return readers_[l].empty();
    if (layer.kind == LayerKind::multiply || adds_adapter(layer))
      return all_read_channels(l) && std::ranges::all_of(layer.inputs, [&](int input) {
               return spread_[at(input)] == Spread::channels || is_product(whole(at(input))) ||
                      goes_by_channel(whole(at(input)));
             });
    return goes_by_channel(layer) && all_read_channels(l);
  }
  bool all_read_channels(std::size_t l) const {
    return !readers_[l].empty() && std::ranges::all_of(readers_[l], [&](std::size_t r) { return takes_channels(r); });
  }

  bool is_sequence(const Shape& shape) const {
    return shape.height == 1 && shape.depth == 1 && shape.width >= parts_ && shape.width % parts_ == 0;
  }

  void divide_layer(std::size_t l) {
    const Layer& layer = whole(l);
    switch (layer.kind) {
      case LayerKind::input: return;
      case LayerKind::embedding: return layer.variant == "table" ? divide_table(l) : follow(l);
      case LayerKind::linear:
      case LayerKind::fully_connected: return divide_product(l);
      case LayerKind::attention: return divide_attention(l);
      case LayerKind::activation:
      case LayerKind::dropout:
      case LayerKind::multiply:
      case LayerKind::softmax:
      case LayerKind::layer_norm:
      case LayerKind::add: return follow(l);
      default: return stay_whole(l);
    }
  }

  /// The first product of an adapter is too small to be divided by columns: it works on what each device has.
  static bool starts_adapter(const Layer& layer) {
    return layer.variant == "adapter" && layer.output.channels < layer.input.channels;
  }

  void divide_product(std::size_t l) {
    const Layer& layer = whole(l);
    const auto input = at(layer.inputs.front());
    if (spread_[input] == Spread::channels) {
      any_ = true;
      divide_rows(l);
    } else if (starts_adapter(layer)) {
      follow(l);
    } else if (!readers_[l].empty() && all_read_channels(l)) {
      any_ = true;
      divide_columns(l);
    } else if (layer.variant == "adapter") {
      follow(l);
    } else {
      stay_whole(l);
    }
  }

  void divide_columns(std::size_t l) {
    const Layer& layer = whole(l);
    Layer& own = part(l);
    enter(l, at(layer.inputs.front()));
    padding_[l] = column_padding(l);
    if (padding_[l] == 1)
      note_padding(
          layer.output.channels,
          readers_[l].size() == 1 && whole(readers_[l].front()).kind == LayerKind::softmax ? "words" : "columns");
    own.output.channels = share(layer.output.channels, padding_[l]);
    // A router, which the first of a chain of experts has too, is everywhere.
    const bool routes = layer.variant == "experts";
    for (ParameterTensor& tensor : own.parameters)
      if (!routes || &tensor == own.parameters.data()) tensor.values = share(tensor.values, padding_[l]);
    const double divided = ratio(own.output.channels, layer.output.channels), router = routes ? router_share(layer) : 0;
    scale_work(own, divided * (1 - router) + router);
    spread_[l] = Spread::channels;
  }

  /// Of a layer's products.
  static double router_share(const Layer& layer) {
    const auto values = [&](std::size_t t) { return static_cast<double>(layer.parameters[t].values); };
    if (layer.parameters.size() < 2) return 0;
    return values(1) / (values(1) + values(0) / layer.experts * layer.experts_per_position);
  }

  /// How often each position of a layer's input or output is there.
  double copies(std::size_t l) const { return divided_.dispatched[l] > 0 ? divided_.dispatched[l] : 1; }

  /// A tensor that columns or heads read: its gradient is summed over the team, once for all that read it. A tensor
  /// divided by positions is gathered first: of experts behind their dispatch, to which each device sends its part.
  void enter(std::size_t l, std::size_t input) {
    const double values = copies(l) * static_cast<double>(whole(input).output.values());
    const bool gathers = spread_[input] == Spread::positions;
    part(l).input = whole(l).input;
    if (entered_[input]) return;
    entered_[input] = true;
    SampleExchanges& own = exchanges_[l];
    const bool sums = whole(l).backward_data_flop > 0;
    // The gradients of experts' inputs travel on at once.
    const bool beside = overlap_ && whole(l).backward_weights_flop > 0 && divided_.dispatched[l] == 0;
    auto& behind = beside ? own.beside_backward_weights : own.after_backward;
    if (gathers) {
      if (divided_.dispatched[l] > 0) divide_exchanges(l);
      own.before_forward.push_back({"all-gather", CollectiveOp::all_gather, values});
      if (!(whole(l).backward_weights_flop > 0)) {
        // Only the gradient of weights reads it again.
      } else if (gather_again_) {
        (beside ? own.beside_backward_data : own.before_backward)
            .push_back({"all-gather again", CollectiveOp::all_gather, values});
      } else {
        part(l).inner_values += whole(input).output.values() - part(input).output.values();
      }
      if (sums) behind.insert(behind.begin(), {"reduce-scatter", CollectiveOp::reduce_scatter, values});
    } else if (sums) {
      behind.insert(behind.begin(), {"all-reduce", CollectiveOp::all_reduce, values});
    }
  }

  void divide_rows(std::size_t l) {
    const Layer& layer = whole(l);
    Layer& own = part(l);
    const double padding = padding_[at(layer.inputs.front())];
    own.input.channels = share(layer.input.channels, padding);
    own.input_values = share(layer.input_values, padding);
    if (!own.parameters.empty()) own.parameters.front().values = share(layer.parameters.front().values, padding);
    scale_work(own, ratio(own.input.channels, layer.input.channels));
    add_up(l);
  }

  /// The parts' outputs are summed.
  void add_up(std::size_t l) {
    if (const Shape& out = whole(l).output;
        by_positions_ && out.height == 1 && out.depth == 1 && out.width > 1 && out.width % parts_ != 0)
      throw place_.error(
          fmt::format("a tensor axis of {} does not divide the {} positions of '{}', as sequence_parallel: true "
                      "needs; use a divisor, or leave that out",
                      parts_, out.width, whole(l).name));
    const double values = copies(l) * static_cast<double>(whole(l).output.values());
    auto& forward = exchanges_[l].after_forward;  // before what experts have made is sent home
    if (by_positions_ && is_sequence(whole(l).output)) {
      if (divided_.dispatched[l] > 0) divide_exchanges(l);
      forward.insert(forward.begin(), {"reduce-scatter", CollectiveOp::reduce_scatter, values});
      if (whole(l).needs_gradient)
        exchanges_[l].before_backward.push_back({"all-gather", CollectiveOp::all_gather, values});
      part(l).output.width = whole(l).output.width / parts_;
      spread_[l] = Spread::positions;
    } else {
      forward.insert(forward.begin(), {"all-reduce", CollectiveOp::all_reduce, values});
    }
  }

  void divide_table(std::size_t l) {
    any_ = true;
    for (ParameterTensor& tensor : part(l).parameters) {
      const std::int64_t rows = tensor.values / whole(l).output.channels;
      note_padding(rows, "words");
      tensor.values = share(rows) * whole(l).output.channels;
    }
    add_up(l);
  }

  void divide_attention(std::size_t l) {
    const Layer& layer = whole(l);
    const auto divided = [&](int input) { return spread_[at(input)] == Spread::channels; };
    if (!std::ranges::all_of(layer.inputs, divided)) return stay_whole(l);
    if (layer.heads < parts_)
      throw place_.error(fmt::format("a tensor axis of {} is more than the {} heads of '{}'; use a divisor of them",
                                     parts_, layer.heads, layer.name));
    note_padding(layer.heads, "heads");
    const Heads all(layer), of_device = share(all);
    divide_exchanges(l, ratio(all.shared, of_device.shared));  // of keys and values, along the context axis
    padding_[l] = ratio(parts_ * of_device.queries, all.queries);
    Layer& own = part(l);
    own.input.channels = part(at(layer.inputs.front())).output.channels;
    own.input_values = 0;
    for (const int input : layer.inputs) own.input_values += part(at(input)).output.values();
    for (std::int64_t* n : {&own.output.channels, &own.inner_values, &own.mask_values}) *n = share(*n, padding_[l]);
    have_heads(own, of_device);
    scale_work(own, ratio(of_device.queries, all.queries));
    spread_[l] = Spread::channels;
  }

  static void have_heads(Layer& layer, const Heads& heads) {
    layer.heads = static_cast<int>(heads.queries);
    layer.kv_heads = static_cast<int>(heads.shared);
  }

  /// What others exchange around a layer of which each device has a part.
  void divide_exchanges(std::size_t l) { divide_exchanges(l, parts_); }
  void divide_exchanges(std::size_t l, double by) {
    exchanges_[l].for_each([&](SampleExchange& exchange) {
      if (exchange.axis != &StageRanks::tensor) exchange.values /= by;
    });
  }

  void by_channels(std::size_t l) {
    Layer& own = part(l);
    divide_exchanges(l);
    const double padding = padding_[at(own.inputs.front())];
    padding_[l] = padding;
    for (std::int64_t* n :
         {&own.input.channels, &own.output.channels, &own.input_values, &own.inner_values, &own.mask_values})
      *n = share(*n, padding);
    double work = padding / parts_;
    if (own.variant == "rotary") {  // turns the heads of queries and keys
      const Heads all(own), of_device = share(all);
      work = ratio(of_device.queries + of_device.shared, all.queries + all.shared);
      have_heads(own, of_device);
    }
    scale_work(own, work);
    spread_[l] = Spread::channels;
  }

  /// What lies as its inputs lie.
  void follow(std::size_t l) {
    const Layer& layer = whole(l);
    const auto all = [&](Spread spread) {
      return std::ranges::all_of(layer.inputs, [&](int input) { return spread_[at(input)] == spread; });
    };
    Layer& own = part(l);
    if (all(Spread::channels) && takes_channels(l)) {
      by_channels(l);
      if (layer.kind != LayerKind::softmax) return;
      const auto positions = static_cast<double>(layer.output.positions());
      for (const char* name : {"all-reduce of maxima", "all-reduce of sums", "all-reduce of targets"})
        exchanges_[l].after_forward.push_back({name, CollectiveOp::all_reduce, positions, true});
      return;
    }
    if (all(Spread::positions)) {
      own.input.width /= parts_;
      own.output.width /= parts_;
      own.input_values /= parts_;
      own.inner_values /= parts_;
      own.mask_values /= parts_;
      scale_work(own, 1.0 / parts_);
      spread_[l] = Spread::positions;
      return;
    }
    stay_whole(l);
  }

  /// Computed on every device, from whole inputs.
  void stay_whole(std::size_t l) {
    for (const int input : whole(l).inputs) {
      const auto i = at(input);
      if (spread_[i] == Spread::whole) continue;
      const auto values = static_cast<double>(whole(i).output.values());
      exchanges_[l].before_forward.push_back({"all-gather", CollectiveOp::all_gather, values});
    }
    spread_[l] = Spread::whole;
  }

  static double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

  DividedModel divided_;
  const Model& model_;
  int parts_;
  bool by_positions_, gather_again_, overlap_;
  const ConfigNode& place_;
  std::shared_ptr<Model> part_;
  std::vector<SampleExchanges> exchanges_;
  std::vector<Spread> spread_;  ///< of a layer's output
  std::vector<double>
      padding_;  ///< of a layer's output: channels with those that nobody reads, over those that are there
  std::vector<bool> entered_;  ///< by layer: its output's gradient is summed by the first layer that reads it
  std::vector<std::vector<std::size_t>> readers_;
  bool any_ = false;  ///< something is divided
};

}  // namespace

TensorBody::TensorBody(const ConfigNode& options)
    : sequence_parallel_(options.get("sequence_parallel", false)),
      gather_again_(options.get("gather_again", true)),
      overlap_(options.get("overlap", true)) {
  if (options.has("gather_again") && !sequence_parallel_)
    throw options.at("gather_again")
        .error("nothing is gathered without sequence_parallel: true; add it, or leave this out");
}

EntryInfo TensorBody::info() {
  return {"tensor",
          "layers divided by columns and rows over the axis `tensor` (Megatron-LM)",
          {{"sequence_parallel", "", "true | false", "false",
            "divide by positions what is whole otherwise: reduce-scatters and all-gathers instead of all-reduces"},
           {"gather_again", "", "true | false", "true",
            "gather inputs once more for the backward pass instead of keeping them (sequence_parallel: true)"},
           {"overlap", "", "true | false", "true",
            "sum the gradient of a layer's input while that of its weights is computed, and gather its input again "
            "while the former is"}}};
}

DividedModel TensorBody::divide(DividedModel model, int parts, const ConfigNode& place) const {
  return TensorDivision(std::move(model), parts, sequence_parallel_, gather_again_, overlap_, place).divide();
}

}  // namespace epocast
