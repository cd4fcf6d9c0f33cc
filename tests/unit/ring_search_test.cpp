// How much rings through all ranks carry together. Where each rank has d lanes to others, no set of rings carries more
// than d: every ring leaves every rank once. That bound is reached where each lane can be equally busy, as on graphs
// that look the same from every edge.
#include "sim/collectives/ring_search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "sim/collectives/packing_program.hpp"

namespace epocast::ring_search_test {

namespace {

using Lanes = std::map<std::pair<int, int>, double>;  // capacity between two ranks, the smaller first, each way

PairNetwork network_of(int ranks, const Lanes& lanes, double detour = 0) {
  PairNetwork network{.ranks = ranks};
  for (int i = 0; i < ranks; ++i)
    for (int j = 0; j < ranks; ++j) {
      const auto found = lanes.find(std::minmax(i, j));
      network.direct.push_back(i != j && found != lanes.end());
      auto& resources = network.resources_of.emplace_back();
      if (i == j) continue;
      resources.push_back(static_cast<int>(network.capacity.size()));
      network.capacity.push_back(found != lanes.end() ? found->second : detour);
    }
  return network;
}

/// The rate of all rings [B/s] if no capacity is exceeded. Checks that they are what find_rings() promises.
double rate_of(const PairNetwork& network, const std::vector<Ring>& rings) {
  std::vector<double> load(network.capacity.size(), 0);
  double shares = 0;
  REQUIRE(rings.size() % 2 == 0);
  for (std::size_t k = 0; k < rings.size(); ++k) {
    const Ring& ring = rings[k];
    REQUIRE(std::set<int>(ring.order.begin(), ring.order.end()).size() == static_cast<std::size_t>(network.ranks));
    REQUIRE(ring.order.size() == static_cast<std::size_t>(network.ranks));
    CHECK(ring.order.front() == 0);
    if (k % 2 == 1) {  // the reverse of the one before
      std::vector<int> back = ring.order;
      std::reverse(back.begin() + 1, back.end());
      CHECK(back == rings[k - 1].order);
      CHECK(ring.share == rings[k - 1].share);
      if (k >= 2) CHECK(ring.share <= rings[k - 2].share * (1 + 1e-6));
    }
    for (std::size_t i = 0; i < ring.order.size(); ++i)
      for (const int r : network.resources_of[network.index(ring.order[i], ring.order[(i + 1) % ring.order.size()])])
        load[static_cast<std::size_t>(r)] += ring.share;
    shares += ring.share;
  }
  CHECK(shares == Approx(1).epsilon(1e-12));
  double rate = 1e300;
  for (std::size_t r = 0; r < load.size(); ++r)
    if (load[r] > 0) rate = std::min(rate, network.capacity[r] / load[r]);
  return rate;
}

double best_rate(int ranks, const Lanes& lanes, double detour = 0) {
  const PairNetwork network = network_of(ranks, lanes, detour);
  return rate_of(network, find_rings(network));
}

Lanes complete(int ranks, double bandwidth) {
  Lanes lanes;
  for (int i = 0; i < ranks; ++i)
    for (int j = i + 1; j < ranks; ++j) lanes[{i, j}] = bandwidth;
  return lanes;
}

/// Quads 0-3 and 4-7, fully connected, and i joined to i + 4.
Lanes hybrid_cube_mesh(double bandwidth) {
  Lanes lanes;
  for (int i = 0; i < 4; ++i) {
    lanes[{i, i + 4}] = bandwidth;
    for (int j = i + 1; j < 4; ++j) lanes[{i, j}] = lanes[{i + 4, j + 4}] = bandwidth;
  }
  return lanes;
}

}  // namespace

TEST_CASE("rings of a complete graph keep all links busy", "[rings]") {
  // n - 1 links leave each rank, and all look the same.
  for (int ranks = 3; ranks <= 10; ++ranks)
    CHECK(best_rate(ranks, complete(ranks, 20e9)) == Approx((ranks - 1) * 20e9));
}

TEST_CASE("rings of a cube keep all links busy, though no ring does alone", "[rings]") {
  Lanes cube;
  for (int i = 0; i < 8; ++i)
    for (const int bit : {1, 2, 4})
      if ((i & bit) == 0) cube[{i, i | bit}] = 1;
  CHECK(best_rate(8, cube) == Approx(3));
}

TEST_CASE("rings of a DGX-1 keep all NVLinks of the GPUs busy", "[rings]") {
  // P100: 4 links each way; the first two rings each way fill them. V100: two lanes on 0-3, 0-4, 1-2, 1-5, 2-3, 4-7,
  // 5-6 and 6-7; 6 lanes.
  CHECK(best_rate(8, hybrid_cube_mesh(20e9)) == Approx(80e9));
  Lanes v100 = hybrid_cube_mesh(25e9);
  for (const auto& pair : {std::pair{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}}) v100[pair] = 50e9;
  CHECK(best_rate(8, v100) == Approx(150e9));
  CHECK(find_rings(network_of(8, v100)).size() <= 6);  // the widest first: no more than one for each lane
  // A quad: 4 lanes leave GPUs 0 and 1.
  Lanes quad;
  for (const auto& [pair, bandwidth] : v100)
    if (pair.second < 4) quad[pair] = bandwidth;
  CHECK(best_rate(4, quad) == Approx(100e9));
}

TEST_CASE("a ring that is left to use slow pairs uses as few as it can", "[rings]") {
  // A path 0-1-2-3: the ring closes over the pair 0-3, at 3 instead of 10.
  const Lanes path{{{0, 1}, 10}, {{1, 2}, 10}, {{2, 3}, 10}};
  // Only 0-3, 0-2 and 1-3 are detours: 0-1-2-3 takes one, at 3 each way; 0-2-1-3 two more, which add 3 each way.
  CHECK(best_rate(4, path, 3) >= 2 * 3);
  // With the direct link, detours stay unused.
  Lanes closed = path;
  closed[{0, 3}] = 4;
  CHECK(best_rate(4, closed, 3) == Approx(2 * 4));
}

TEST_CASE("rings found by price carry what all rings do, and no rank sends more than it can", "[rings]") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> lanes_between(0, 3);
  for (int trial = 0; trial < 40; ++trial) {
    const int ranks = 4 + trial % 4;
    Lanes lanes;
    std::vector<double> leaving(static_cast<std::size_t>(ranks), 0);
    for (int i = 0; i < ranks; ++i)
      for (int j = i + 1; j < ranks; ++j) {
        const int many = j == i + 1 || j == ranks - 1 ? 1 + lanes_between(random) : lanes_between(random);
        if (many == 0) continue;
        lanes[{i, j}] = many;
        leaving[static_cast<std::size_t>(i)] += many;
        leaving[static_cast<std::size_t>(j)] += many;
      }
    const PairNetwork network = network_of(ranks, lanes);
    const double found = rate_of(network, find_rings(network));
    CHECK(found <= *std::min_element(leaving.begin(), leaving.end()) * (1 + 1e-9));

    // All rings, each once in both directions, offered again and again until none helps.
    std::vector<std::vector<double>> columns;
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    do {
      if (order[1] > order.back()) continue;
      std::vector<double> column(network.capacity.size(), 0);
      bool direct = true;
      for (std::size_t i = 0; i < order.size(); ++i) {
        const int from = order[i], to = order[(i + 1) % order.size()];
        direct = direct && network.direct[network.index(from, to)];
        for (const std::size_t pair : {network.index(from, to), network.index(to, from)})
          for (const int r : network.resources_of[pair]) ++column[static_cast<std::size_t>(r)];
      }
      if (direct) columns.push_back(column);
    } while (std::next_permutation(order.begin() + 1, order.end()));
    PackingProgram program(network.capacity);
    for (int pivots = 0; pivots < 10000; ++pivots) {
      const std::vector<double> price = program.prices();
      const auto least = std::min_element(price.begin(), price.end());
      if (*least < -1e-9) {
        program.enter_slack(static_cast<int>(least - price.begin()));
        continue;
      }
      const auto cost = [&](const std::vector<double>& column) {
        return std::inner_product(column.begin(), column.end(), price.begin(), 0.0);
      };
      const auto best = std::min_element(columns.begin(), columns.end(),
                                         [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
      if (cost(*best) >= 1 - 1e-9) break;
      REQUIRE(program.enter(*best) >= 0);
    }
    double all = 0;
    for (const double rate : program.values()) all += 2 * rate;
    CAPTURE(trial, ranks);
    CHECK(found == Approx(all).epsilon(1e-9));
  }
}

TEST_CASE("a packing program finds the optimum of a small linear program", "[rings]") {
  // max x + y + z with x + y <= 1, y + z <= 1, x + z <= 1: 1/2 each. Duals are 1/2 too: 3/2 is the optimum.
  PackingProgram program({1, 1, 1});
  CHECK(program.enter({1, 1, 0}) == 0);  // takes all of two rows
  CHECK(program.slack() == std::vector<double>{0, 0, 1});
  CHECK(program.enter({0, 1, 1}) == 1);  // nothing is left for it
  CHECK(program.enter({1, 0, 1}) == 2);
  for (const double x : program.values()) CHECK(x == Approx(0.5));
  for (const double price : program.prices()) CHECK(price == Approx(0.5));
  CHECK(program.enter({0, 0, 0}) == -1);  // nothing limits it
}

}  // namespace epocast::ring_search_test
