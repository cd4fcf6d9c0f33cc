#include "experiments/partition/metis_backend.hpp"

#include <fmt/format.h>

#include "sim/error.hpp"

#ifdef EPOCAST_METIS
#include <metis.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "experiments/partition/best_partition.hpp"
#include "strategies/partitioners/graph_expansion.hpp"
#endif

namespace epocast {

#ifdef EPOCAST_METIS
namespace {

/// More pairs of pins take longer to become cliques than METIS takes for all the rest; more edges, a gigabyte.
constexpr double kMostCliquePairs = 1e9;
constexpr std::size_t kMostCliqueEdges = 20'000'000;
/// METIS adds up weights in 32 bits.
constexpr double kLargestTotal = 1 << 30;

enum class Method { k_way, bisection };

/// A graph in METIS' types.
struct MetisGraph {
  explicit MetisGraph(const WeightedGraph& graph) : tasks(graph.tasks) {
    if (graph.neighbour.size() > static_cast<std::size_t>(std::numeric_limits<idx_t>::max()))
      throw ConfigError(fmt::format("--algorithm metis: {} pins are too many for METIS", graph.neighbour.size() / 2));
    begin.assign(graph.begin.begin(), graph.begin.end());
    neighbour.assign(graph.neighbour.begin(), graph.neighbour.end());
    vertex_weight = whole(graph.vertex_weight);
    edge_weight = whole(graph.edge_weight);
  }

  /// Scaled and rounded, but what is small does not vanish.
  static std::vector<idx_t> whole(const std::vector<double>& numbers) {
    double total = 0;
    for (const double number : numbers) total += number;
    std::vector<idx_t> out;
    for (const double number : numbers)
      out.push_back(number > 0 ? std::max<idx_t>(1, static_cast<idx_t>(number * (kLargestTotal / total))) : 0);
    return out;
  }

  int tasks;
  std::vector<idx_t> begin, neighbour, vertex_weight, edge_weight;
};

/// Parts of the tasks. REQUIRES parts > 1: METIS divides by log2(parts). Throws std::runtime_error if METIS fails.
std::vector<int> run_metis(MetisGraph& graph, Method method, const PartitionOptions& options, double imbalance,
                           int start) {
  idx_t set[METIS_NOPTIONS];
  METIS_SetDefaultOptions(set);
  set[METIS_OPTION_SEED] = static_cast<idx_t>((options.seed + static_cast<std::uint64_t>(start)) % (1U << 31));
  auto vertices = static_cast<idx_t>(graph.vertex_weight.size());
  idx_t constraints = 1, parts = options.parts, cut = 0;
  auto tolerance = static_cast<real_t>(1 + imbalance);
  std::vector<idx_t> part(graph.vertex_weight.size());
  const auto call = method == Method::k_way ? METIS_PartGraphKway : METIS_PartGraphRecursive;
  const int result =
      call(&vertices, &constraints, graph.begin.data(), graph.neighbour.data(), graph.vertex_weight.data(), nullptr,
           graph.edge_weight.data(), &parts, nullptr, &tolerance, set, &cut, part.data());
  if (result != METIS_OK) throw std::runtime_error(fmt::format("METIS failed with code {}", result));
  return {part.begin(), part.begin() + graph.tasks};
}

std::string as_bytes(const std::vector<int>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int)};
}

std::vector<int> from_bytes(const std::string& bytes) {
  std::vector<int> out(bytes.size() / sizeof(int));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(int));
  return out;
}

/// Offers what METIS makes of a graph, by both methods and from all starts; keeps what it says if it fails.
void try_all(MetisGraph graph, const PartitionOptions& options, BestPartition& best, std::string& failure) {
  run_forked(
      4 * options.starts, 1,
      [&](int job) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        const double imbalance = imbalances_to_ask(options)[static_cast<std::size_t>(job / 2 % 2)];
        const std::vector<int> parts =
            run_metis(graph, job % 2 == 0 ? Method::k_way : Method::bisection, options, imbalance, job / 4);
        std::fflush(nullptr);
        return as_bytes(parts);
      },
      [&](int, const JobOutcome& outcome) {
        if (outcome.finished)
          best.offer({options.parts, from_bytes(outcome.output)});
        else
          failure = outcome.signal != 0 ? fmt::format("METIS died of signal {}", outcome.signal) : outcome.errors;
      });
}

}  // namespace

bool has_metis() { return true; }

Partition partition_with_metis(const Hypergraph& graph, const PartitionOptions& options) {
  check_partition_options(graph, options);
  if (options.parts == 1) return {1, std::vector<int>(static_cast<std::size_t>(graph.vertices()))};
  BestPartition best(graph, options);
  std::string failure;
  try_all(MetisGraph(expand_to_stars(graph)), options, best, failure);
  if (clique_pairs(graph) <= kMostCliquePairs)
    if (const auto cliques = expand_to_cliques(graph, kMostCliqueEdges))
      try_all(MetisGraph(*cliques), options, best, failure);
  if (!best.any()) throw ConfigError("--algorithm metis: " + failure);
  return best.take();
}
#else
bool has_metis() { return false; }

Partition partition_with_metis(const Hypergraph&, const PartitionOptions&) {
  throw ConfigError(
      "--algorithm metis: this epocast was built without METIS; install libmetis-dev and build again, or use "
      "--algorithm hypergraph");
}
#endif

}  // namespace epocast
