#include "strategies/partitioners/partition_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace epocast {
namespace {

/// Fewest parts for which the heaviest vertex is within the limit, the other way round.
int most_parts(double total, double heaviest, double imbalance) {
  return std::max(1, static_cast<int>(std::floor((1 + imbalance) * total / heaviest)));
}

}  // namespace

std::vector<int> check_partition_options(const Hypergraph& graph, const PartitionOptions& options) {
  if (options.parts < 1) throw PartitionError(fmt::format("{} parts; at least one is needed", options.parts));
  if (options.parts > graph.vertices())
    throw PartitionError(fmt::format("{} parts, but only {} vertices; use at most {} parts or a finer grain",
                                     options.parts, graph.vertices(), graph.vertices()));
  if (!(options.imbalance >= 0) || !std::isfinite(options.imbalance))
    throw PartitionError(fmt::format("an imbalance of {} makes no sense; it must be 0 or more", options.imbalance));
  const double total = graph.total_weight();
  if (!(total > 0)) throw PartitionError("all vertices weigh nothing");
  const double limit = weight_limit(total, options.parts, options.imbalance);
  const double slack = 1e-9 * total;
  std::vector<int> heavy;
  double rest = total;
  for (int v = 0; v < graph.vertices(); ++v) {
    if (graph.weight(v) <= limit + slack) continue;
    heavy.push_back(v);
    rest -= graph.weight(v);
  }
  std::stable_sort(heavy.begin(), heavy.end(), [&](int a, int b) { return graph.weight(a) > graph.weight(b); });
  if (heavy.empty()) return heavy;
  const double heaviest = graph.weight(heavy.front());
  const std::string name = options.name ? options.name(heavy.front()) : fmt::format("vertex {}", heavy.front());
  if (!options.heavy_alone)
    throw PartitionError(fmt::format(
        "{} weighs {:.6g}, but {} parts with an imbalance of {:.6g} may weigh {:.6g} at most; use at most "
        "{} parts or an imbalance of {:.4g}, or let heavy vertices have a part of their own",
        name, heaviest, options.parts, options.imbalance, limit, most_parts(total, heaviest, options.imbalance),
        std::ceil((heaviest * options.parts / total - 1) * 1000) / 1000));
  const int left = options.parts - static_cast<int>(heavy.size());
  if (rest > left * limit + slack)
    throw PartitionError(fmt::format(
        "{} vertices are too heavy for any part, and the rest, {:.6g}, does not fit into {} parts of {:.6g}",
        heavy.size(), rest, left, limit));
  return heavy;
}

PartitionRandom::PartitionRandom(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {  // splitmix64, as its authors advise
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

std::uint64_t PartitionRandom::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

int PartitionRandom::below(int n) {
  return static_cast<int>(
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(next() >> 32)) * static_cast<std::uint64_t>(n)) >> 32);
}

double PartitionRandom::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

}  // namespace epocast
