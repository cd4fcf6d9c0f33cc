#include "strategies/partitioners/model_filters.hpp"

#include <algorithm>
#include <cassert>

namespace epocast {
namespace {

/// Feature maps that pass through a layer of the model.
struct Stream {
  int from = 0;       ///< layer of the FilterNetwork that makes them
  double values = 0;  ///< of one sample, all maps
};

bool maps_stay_apart(LayerKind kind) {
  switch (kind) {
    case LayerKind::pooling:
    case LayerKind::batch_norm:
    case LayerKind::local_response_norm:
    case LayerKind::activation:
    case LayerKind::concat:
    case LayerKind::dropout:
    case LayerKind::flatten:
    case LayerKind::softmax:
    case LayerKind::layer_norm: return true;
    default: return false;
  }
}

class FilterNetworkBuilder {
 public:
  FilterNetworkBuilder(const Model& model, std::int64_t batch, const std::vector<double>& work)
      : model_(model), batch_(static_cast<double>(batch)), work_(work), streams_(model.layers.size()) {
    network_.name = model.name;
  }

  FilterNetwork build() {
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      const Layer& layer = model_.layers[l];
      if (l == 0) {
        add_layer(l, static_cast<int>(layer.output.channels));
      } else if (layer.kind == LayerKind::convolution) {
        add_convolution(l);
      } else if (maps_stay_apart(layer.kind) && (work_[l] == 0 || reads_filters(layer))) {
        pass_on(l);
      } else if (!add_elementwise(l)) {
        add_layer(l, 1);
        read_inputs(l);
      }
    }
    return std::move(network_);
  }

 private:
  FilterLayer& add_layer(std::size_t l, int filters) {
    const Layer& layer = model_.layers[l];
    const auto values = static_cast<double>(layer.output.values());
    network_.layers.push_back({.name = layer.name,
                               .filters = filters,
                               .work = l == 0 ? 0 : work_[l],
                               .sent = 0,
                               .raw = values * batch_,
                               .reads = {},
                               .pairs = {}});
    streams_[l] = {{static_cast<int>(network_.layers.size()) - 1, values}};
    return network_.layers.back();
  }

  /// Whether some input comes from a layer that can take the work of what follows it: not from the network's input.
  bool reads_filters(const Layer& layer) const {
    return std::any_of(layer.inputs.begin(), layer.inputs.end(), [&](int input) {
      const std::vector<Stream>& streams = streams_[static_cast<std::size_t>(input)];
      return std::any_of(streams.begin(), streams.end(), [](const Stream& stream) { return stream.from > 0; });
    });
  }

  /// A reader sees these maps at their present size.
  void see(const Stream& stream) {
    double& sent = network_.layers[static_cast<std::size_t>(stream.from)].sent;
    sent = std::max(sent, stream.values * batch_);
  }

  void read_inputs(std::size_t l) {
    for (const int input : model_.layers[l].inputs)
      for (const Stream& stream : streams_[static_cast<std::size_t>(input)]) {
        see(stream);
        std::vector<int>& reads = network_.layers.back().reads;
        if (std::find(reads.begin(), reads.end(), stream.from) == reads.end()) reads.push_back(stream.from);
      }
  }

  void add_convolution(std::size_t l) {
    const Layer& layer = model_.layers[l];
    const std::vector<Stream> input = streams_[static_cast<std::size_t>(layer.inputs.front())];
    FilterLayer& made = add_layer(l, static_cast<int>(layer.output.channels));
    const bool depthwise = layer.groups > 1 && layer.groups == layer.output.channels && input.size() == 1 &&
                           network_.layers[static_cast<std::size_t>(input.front().from)].filters == made.filters;
    if (!depthwise) return read_inputs(l);
    see(input.front());
    made.pairs.push_back(input.front().from);
  }

  /// The maps of all inputs, at a size in proportion to the output's. The work goes to who made the last of them.
  void pass_on(std::size_t l) {
    const Layer& layer = model_.layers[l];
    for (const int input : layer.inputs)
      for (Stream stream : streams_[static_cast<std::size_t>(input)]) {
        stream.values *= static_cast<double>(layer.output.values()) / static_cast<double>(layer.input_values);
        streams_[l].push_back(stream);
      }
    owner(streams_[l]).work += work_[l];
  }

  FilterLayer& owner(const std::vector<Stream>& streams) {
    const Stream& last = *std::max_element(streams.begin(), streams.end(),
                                           [](const Stream& a, const Stream& b) { return a.from < b.from; });
    return network_.layers[static_cast<std::size_t>(std::max(last.from, 0))];
  }

  /// A sum or product of maps of equally many filters. False if the operands are not like that.
  bool add_elementwise(std::size_t l) {
    const Layer& layer = model_.layers[l];
    if (layer.kind != LayerKind::add && layer.kind != LayerKind::multiply) return false;
    std::vector<Stream> operands;
    for (const int input : layer.inputs) {
      const std::vector<Stream>& streams = streams_[static_cast<std::size_t>(input)];
      if (streams.size() != 1) return false;
      operands.push_back(streams.front());
    }
    FilterLayer& sum = owner(operands);
    const int own = static_cast<int>(&sum - network_.layers.data());
    for (const Stream& operand : operands)
      if (network_.layers[static_cast<std::size_t>(operand.from)].filters != sum.filters) return false;
    for (const Stream& operand : operands) {
      if (operand.from == own) continue;
      see(operand);
      if (std::find(sum.pairs.begin(), sum.pairs.end(), operand.from) == sum.pairs.end())
        sum.pairs.push_back(operand.from);
    }
    sum.work += work_[l];
    streams_[l] = {{own, static_cast<double>(layer.output.values())}};
    return true;
  }

  const Model& model_;
  double batch_;
  const std::vector<double>& work_;
  FilterNetwork network_;
  std::vector<std::vector<Stream>> streams_;  ///< by layer of the model
};

}  // namespace

FilterNetwork filter_network(const Model& model, std::int64_t batch, const std::vector<double>& work) {
  assert(work.size() == model.layers.size());
  return FilterNetworkBuilder(model, batch, work).build();
}

}  // namespace epocast
