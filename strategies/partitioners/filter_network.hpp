#pragma once
// A network as partitioners of filters see it: layers of equal filters, and who reads whose feature maps.

#include <string>
#include <vector>

#include "strategies/partitioners/hypergraph.hpp"

namespace epocast {

/// A layer that multiplies weights, with everything that follows it up to the next ones: pooling, activation and so on
/// belong to the filter that makes their input.
struct FilterLayer {
  std::string name;
  /// Feature maps that it hands on, and tasks it can be cut into; a fully connected layer is one task.
  int filters = 1;
  double work = 0;              ///< of all filters, in any unit
  double sent = 0;              ///< what its readers read, for a batch, in any unit
  double raw = 0;               ///< the same before pooling: what partial sums of a filter over its channels are
  std::vector<int> reads = {};  ///< earlier layers whose feature maps each filter reads, all of them
  /// Earlier layers of which filter i reads feature map i only: operands of an element-wise addition.
  std::vector<int> pairs = {};
};

/// layers[0] is the input: its filters are the image's channels, and its work is 0.
struct FilterNetwork {
  std::string name;
  std::vector<FilterLayer> layers;

  double work() const;
  /// Channels of each filter: feature maps of all layers that it reads.
  int channels(int layer) const;
  /// Layers that read this one's feature maps, all or map by map, in order.
  std::vector<int> readers(int layer) const;
  /// Whether any layer reads map by map.
  bool has_pairs() const;
};

/// Coarse grain (Eserol 2019, section 3.4): a vertex per filter, in order of layers; net i joins filter i and all that
/// read its feature map, and costs that map. The input's channels are vertices without weight.
Hypergraph coarse_grain(const FilterNetwork& network);

/// Fine grain (Eserol 2019, section 3.3): per filter of a convolution, a vertex per channel, then one for the sum over
/// channels, which weighs nothing. A fully connected layer and each channel of the input is a single vertex. Nets, in
/// order of layers and filters: the partial sums of a filter with the vertex that adds them, which cost its map before
/// pooling; and that vertex with the channels that read its feature map. Layers with one filter have no sums.
Hypergraph fine_grain(const FilterNetwork& network);

/// First vertex of each layer in either hypergraph, and the number of all vertices.
std::vector<int> coarse_offsets(const FilterNetwork& network);
std::vector<int> fine_offsets(const FilterNetwork& network);

/// The fine-grain partition in which a filter's channels are all where the coarse-grain one has the filter.
Partition refine_grain(const FilterNetwork& network, const Partition& coarse);

/// "filter 12 of 'conv1_2'", "channel 3 of filter 12 of 'conv1_2'".
std::string coarse_vertex_name(const FilterNetwork& network, int vertex);
std::string fine_vertex_name(const FilterNetwork& network, int vertex);

}  // namespace epocast
