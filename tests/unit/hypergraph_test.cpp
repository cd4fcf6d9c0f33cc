// Small hypergraphs whose costs are counted by hand.
#include "strategies/partitioners/hypergraph.hpp"

#include <catch2/catch.hpp>

#include <array>

#include "sim/error.hpp"
#include "strategies/partitioners/class_annealing.hpp"
#include "strategies/partitioners/communication_volume.hpp"
#include "strategies/partitioners/model_filters.hpp"
#include "strategies/partitioners/simple_partitioners.hpp"
#include "strategies/partitioners/vertex_classes.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::hypergraph_test {

namespace {

/// Input of 1 map, then layers of 2 and 2 filters and one of a single task: 8, 4, 2 and 6 units of work.
FilterNetwork small_network() {
  return {"small",
          {{"input", 1, 0, 10, 10, {}, {}},
           {"a", 2, 8, 6, 12, {0}, {}},
           {"b", 2, 4, 4, 4, {1}, {}},
           {"c", 1, 6, 0, 1, {2}, {}}}};
}

std::string message(const Hypergraph& graph, const PartitionOptions& options) {
  try {
    check_partition_options(graph, options);
  } catch (const PartitionError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("connectivity and cut nets of a hypergraph of five vertices") {
  Hypergraph graph;
  for (const double weight : {1.0, 2.0, 3.0, 4.0, 5.0}) graph.add_vertex(weight);
  graph.add_net(10, std::array{0, 1});       // inside part 0
  graph.add_net(7, std::array{1, 2});        // parts 0 and 1
  graph.add_net(3, std::array{0, 2, 3, 4});  // parts 0, 1 and 2
  const Partition partition{3, {0, 0, 1, 2, 2}};
  CHECK(connectivity(graph, partition, 0) == 1);
  CHECK(connectivity(graph, partition, 1) == 2);
  CHECK(connectivity(graph, partition, 2) == 3);
  CHECK(cut_cost(graph, partition, CutObjective::connectivity) == 7 * 1 + 3 * 2);
  CHECK(cut_cost(graph, partition, CutObjective::cut_net) == 7 + 3);
  CHECK(part_loads(graph, partition) == std::vector<double>{3, 3, 9});
  const LoadBalance balance = load_balance(graph, {4, partition.part_of});  // part 3 is empty
  CHECK(balance.max == 9);
  CHECK(balance.min == 3);
  CHECK(balance.used_parts == 3);
  CHECK(balance.average == 5);
}

TEST_CASE("vertices that are matched one to one are no classes") {
  // Two vertices of weight 1 and two of weight 2 look alike, but a net of one of each says which belongs to which.
  Hypergraph graph;
  for (const double weight : {1.0, 1.0, 2.0, 2.0}) graph.add_vertex(weight);
  graph.add_net(5, std::array{0, 2});
  graph.add_net(5, std::array{1, 3});
  const VertexClasses found = find_classes(graph);
  CHECK(found.classes.size() == 4);
  REQUIRE(found.families.size() == 2);
  for (const NetFamily& family : found.families) {
    CHECK(family.source == -1);
    CHECK(family.all.size() == 2);
    CHECK(family.cost == 5);
  }
}

TEST_CASE("the coarse grain has a vertex and a net per filter") {
  const Hypergraph graph = coarse_grain(small_network());
  CHECK(graph.vertices() == 1 + 2 + 2 + 1);
  CHECK(graph.nets() == 1 + 2 + 2);  // nobody reads c
  CHECK(graph.pin_count() == 3 + 2 * 3 + 2 * 2);
  CHECK(graph.weight(0) == 0);
  CHECK(graph.weight(1) == 4);
  CHECK(graph.cost(1) == 3);  // a sends 6 in 2 maps
  CHECK(std::vector<int>(graph.pins(1).begin(), graph.pins(1).end()) == std::vector<int>{1, 3, 4});
}

TEST_CASE("the fine grain has a vertex per channel, and sums") {
  // a: 2 filters of 1 channel and a sum; b: 2 of 2 channels and a sum; c is one task.
  const Hypergraph graph = fine_grain(small_network());
  CHECK(graph.vertices() == 1 + 2 * 2 + 2 * 3 + 1);
  CHECK(graph.nets() == 1 + 2 * 2 + 2 * 2);
  // input with both channels of a; partial sums of a and a's maps; those of b.
  CHECK(graph.pin_count() == 3 + 2 * (2 + 3) + 2 * (3 + 2));
  CHECK(graph.total_weight() == 18);
  // Channel 1 of both filters of b reads map 1 of a, which is the sum at vertex 4.
  CHECK(std::vector<int>(graph.pins(4).begin(), graph.pins(4).end()) == std::vector<int>{4, 6, 9});
  CHECK(graph.cost(3) == 6);  // partial sums of filter 1 of a: 12 / 2 before pooling
  CHECK(fine_vertex_name(small_network(), 6) == "channel 1 of filter 0 of 'b'");
  CHECK(fine_vertex_name(small_network(), 4) == "sum of filter 1 of 'a'");
}

TEST_CASE("gather and broadcast of a partition by hand") {
  // Part 0 has the input, a and filter 0 of b; part 1 filter 1 of b and c. The root of b is part 1: half of b's 4 are
  // gathered there, and c is there. a goes to part 1: 6. The input stays.
  const Partition partition{2, {0, 0, 0, 0, 1, 1}};
  const GatherBroadcast traffic = gather_broadcast(small_network(), coarse_shares(small_network(), partition));
  CHECK(traffic.volume == 6 + 2);
  CHECK(traffic.largest_broadcast == 6);
  // By connectivity: both maps of a, and map 0 of b.
  CHECK(cut_cost(coarse_grain(small_network()), partition, CutObjective::connectivity) == 6 + 2);
  CHECK(message_bytes(8).value == 64);
  // With c in a third part, b's two halves meet there: 4 are gathered, and nothing is sent on.
  const Partition apart{3, {0, 0, 0, 0, 1, 2}};
  CHECK(gather_broadcast(small_network(), coarse_shares(small_network(), apart)).volume == 6 + 4);
}

TEST_CASE("simple partitioners on a small network") {
  // Layers weigh 8, 4, 6. Halves: 8 | 10. Then 8, 4, 6.
  CHECK(layerwise_bisection(small_network(), 2).part_of == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(layerwise_bisection(small_network(), 3).part_of == std::vector<int>{0, 0, 0, 1, 1, 2});
  CHECK_THROWS_WITH(layerwise_bisection(small_network(), 4),
                    "4 parts, but 3 layers that have work; use 1 to 3 parts or a finer grain");
  CHECK(split_horizontally(small_network(), 2).part_of == std::vector<int>{0, 0, 1, 0, 1, 0});
  // Average 6: 4 + 4 exceeds it; 2 + 2 + 6.
  CHECK(fill_in_order(coarse_grain(small_network()), 3).part_of == std::vector<int>{0, 0, 0, 1, 1, 1});
  // Average 2: the first 2 do not exceed it, 2 + 2 do.
  Hypergraph equal;
  for (int v = 0; v < 3; ++v) equal.add_vertex(2);
  CHECK(fill_in_order(equal, 3).part_of == std::vector<int>{0, 0, 1});
}

TEST_CASE("as many parts as vertices of weight 1: each has one") {
  Hypergraph graph;
  for (int v = 0; v < 3; ++v) graph.add_vertex(1);
  std::vector<int> parts = partition_by_annealing(graph, {.parts = 3, .imbalance = 0}).part_of;
  std::sort(parts.begin(), parts.end());
  CHECK(parts == std::vector<int>{0, 1, 2});
}

TEST_CASE("a filter of a depthwise convolution reads its own map, one of a grouped convolution all") {
  const Model model = parse_model(
      "model: m\ninput: {channels: 3, height: 8, width: 8}\nlayers:\n"
      "  - {conv: a, filters: 4, kernel: 3, padding: 1}\n"
      "  - {conv: own, filters: 4, kernel: 3, padding: 1, groups: 4}\n"
      "  - {conv: grouped, filters: 4, kernel: 3, padding: 1, groups: 2}\n",
      "m.yaml");
  const FilterNetwork network = filter_network(model, 1, std::vector<double>(model.layers.size(), 1));
  REQUIRE(network.layers.size() == 4);
  CHECK(network.layers[2].pairs == std::vector<int>{1});
  CHECK(network.layers[2].reads.empty());
  CHECK(network.layers[3].reads == std::vector<int>{2});
  CHECK(network.layers[3].pairs.empty());
}

TEST_CASE("what cannot be partitioned is explained") {
  Hypergraph graph;
  for (const double weight : {10.0, 1.0, 1.0}) graph.add_vertex(weight);
  CHECK(message(graph, {.parts = 4}) == "4 parts, but only 3 vertices; use at most 3 parts or a finer grain");
  CHECK(message(graph, {.parts = 0}) == "0 parts; at least one is needed");
  CHECK(message(graph, {.parts = 2, .imbalance = -1}) == "an imbalance of -1 makes no sense; it must be 0 or more");
  // 10 against 1.1 x 12 / 2 = 6.6; 10 x 2 / 12 - 1 = 0.667.
  CHECK(message(graph, {.parts = 2, .imbalance = 0.1}) ==
        "vertex 0 weighs 10, but 2 parts with an imbalance of 0.1 may weigh 6.6 at most; use at most 1 parts or an "
        "imbalance of 0.667, or let heavy vertices have a part of their own");
  CHECK(message(graph, {.parts = 2, .imbalance = 0.1, .heavy_alone = true}) == "no error");
  const Partition alone = partition_by_annealing(graph, {.parts = 2, .imbalance = 0.1, .heavy_alone = true});
  CHECK(alone.part_of == std::vector<int>{1, 0, 0});
}

}  // namespace epocast::hypergraph_test
