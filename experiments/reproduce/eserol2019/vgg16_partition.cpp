#include "experiments/reproduce/eserol2019/vgg16_partition.hpp"

#include <cmath>
#include <numeric>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "sim/data_directory.hpp"
#include "strategies/partitioners/model_filters.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::eserol2019 {
namespace {

constexpr int kBatch = 32;
/// Sum of all works of channels: maximum + minimum of N=2 are 42,739.0 to 42,740.5 in Tables 5.11 and A.6, and 42,738.5
/// to 42,740 in A.4.
constexpr double kChannelTotal = 42739.5;

/// Takes the difference between the two sums from the layers that are cut into channels: from every channel in
/// proportion to the square root of its work. The exponent is an input, from Table 5.8.
void take_channel_losses(FilterNetwork& network) {
  std::vector<double> losses;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const FilterLayer& layer = network.layers[l];
    const double channels = layer.filters == 1 ? 0 : layer.filters * network.channels(static_cast<int>(l));
    losses.push_back(std::sqrt(layer.work * channels));  // channels x sqrt(work / channels)
  }
  const double scale = (network.work() - kChannelTotal) / std::accumulate(losses.begin(), losses.end(), 0.0);
  for (std::size_t l = 0; l < network.layers.size(); ++l) network.layers[l].work -= losses[l] * scale;
}

}  // namespace

FilterNetwork vgg16_filters(Vertex vertex) {
  const Model model = load_model(data_directory() / "workloads" / "models" / "vgg16.yaml");
  const PublishedTable works = PublishedTable::load(
      data_directory() / "experiments" / "reproduce" / "eserol2019" / "layer_works.csv", {"layer"});
  std::vector<double> work;
  for (const Layer& layer : model.layers)
    work.push_back(multiplies_weights(layer.kind) ? works.value({layer.name}, "work") : 0);
  FilterNetwork network = filter_network(model, kBatch, work);
  if (vertex == Vertex::channel) take_channel_losses(network);
  for (FilterLayer& layer : network.layers) {
    layer.sent /= kMega;
    layer.raw /= kMega;
  }
  return network;
}

PartitionOptions search_options(int workers, double imbalance) {
  PartitionOptions options{.parts = workers, .imbalance = imbalance, .heavy_alone = true};
  options.starts = workers <= 4 ? 8 : 2;
  return options;
}

PublishedTable partition_table(const std::string& name) {
  return PublishedTable::load(
      data_directory() / "experiments" / "reproduce" / "eserol2019" / ("table_" + name + ".csv"), {"workers"});
}

double truncated(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::floor(value * scale + 1e-6) / scale;
}

int printed_digits(const std::string& table, const std::string& quantity) {
  if (quantity.find('/') != std::string::npos) return 1;  // ratios
  if (quantity.ends_with("work") || quantity == "max*N") return 0;
  if (table == "5_4") return 0;
  if (quantity == "volume") return table == "5_6" || table == "5_8" || table == "5_10" ? 0 : 1;
  return 1;
}

}  // namespace epocast::eserol2019
