#pragma once
// VGG-16 as the thesis partitions it, and its way to print numbers. Volumes are in its MB: 2^20 activation values of a
// forward pass of 32 images.

#include <string>

#include "experiments/reproduce/published_table.hpp"
#include "strategies/partitioners/filter_network.hpp"
#include "strategies/partitioners/partition_options.hpp"

namespace epocast::eserol2019 {

/// What a vertex is: a filter (coarse grain) or one channel of a filter (fine grain).
enum class Vertex { filter, channel };

/// With the works of layer_works.csv, which are those of filters. Channels add up to less, in a way that the thesis
/// does not explain: each has lost in proportion to the square root of its work.
FilterNetwork vgg16_filters(Vertex vertex);

/// How hypergraph partitions are searched for. Few parts with little room are hard to balance, and quick to search:
/// they have more starts. A fully connected layer too heavy for any part has one to itself.
PartitionOptions search_options(int workers, double imbalance);

/// table_NAME.csv, with cells found by the number of workers.
PublishedTable partition_table(const std::string& name);

/// The first so many digits after the point, as the thesis prints.
double truncated(double value, int digits);

/// Digits after the point that a quantity is printed with.
int printed_digits(const std::string& table, const std::string& quantity);

}  // namespace epocast::eserol2019
