#include "experiments/place/synthetic_graph.hpp"

#include <random>
#include <vector>

namespace epocast {
namespace {

constexpr std::size_t kBlockNodes = 10;  // forward, backward and update together
constexpr int kMostBranches = 8;
constexpr double kOutputBytes = 4e6;
constexpr double kVariableBytes = 1e6;

struct Block {
  std::uint32_t variable, product, cheap[2];
};

class Builder {
 public:
  explicit Builder(std::uint64_t seed) : random_(seed) {}

  std::uint32_t add(double microseconds, double bytes, Lifetime lifetime = Lifetime::normal, std::int32_t group = -1) {
    graph_.add_node(to_ticks(microseconds * 1e-6), bytes, lifetime, group);
    return static_cast<std::uint32_t>(graph_.size() - 1);
  }
  void connect(std::uint32_t from, std::uint32_t to) { edges_.push_back({from, to, graph_.memory[from]}); }
  double between(double low, double high) { return low + (high - low) * static_cast<double>(random_() % 1001) / 1000; }

  Block forward(std::uint32_t input) {
    Block block{};
    block.variable = add(0, kVariableBytes, Lifetime::residual, graph_.groups++);
    block.product = add(between(20, 400), kOutputBytes);
    connect(block.variable, block.product);
    connect(input, block.product);
    std::uint32_t last = block.product;
    for (std::uint32_t& node : block.cheap) {
      node = add(between(8, 25), kOutputBytes);
      connect(last, node);
      last = node;
    }
    return block;
  }

  std::uint32_t backward(const Block& block, std::uint32_t input, std::uint32_t gradient) {
    std::uint32_t last = gradient;
    for (int i = 1; i >= 0; --i) {
      const std::uint32_t node = add(between(8, 40), kOutputBytes);
      connect(last, node);
      connect(i == 1 ? block.cheap[1] : block.cheap[0], node);
      last = node;
    }
    const std::uint32_t of_weights = add(between(20, 400), kVariableBytes),
                        of_input = add(between(20, 400), kOutputBytes);
    connect(last, of_weights);
    connect(input, of_weights);
    connect(last, of_input);
    connect(block.variable, of_input);
    const std::uint32_t update = add(between(8, 15), 0, Lifetime::reference, graph_.group[block.variable]);
    connect(of_weights, update);
    return of_input;
  }

  PlacementGraph build(std::size_t nodes) {
    struct Stage {
      std::uint32_t input, output;
      std::vector<Block> blocks;
    };
    std::vector<Stage> stages;
    std::uint32_t value = add(10, kOutputBytes);
    for (std::size_t made = 0; made < nodes;) {
      Stage stage{value, 0, {}};
      const auto branches = 1 + static_cast<int>(random_() % kMostBranches);
      for (int b = 0; b < branches; ++b) stage.blocks.push_back(forward(value));
      stage.output = add(between(8, 25), kOutputBytes);
      for (const Block& block : stage.blocks) connect(block.cheap[1], stage.output);
      connect(value, stage.output);
      value = stage.output;
      made += kBlockNodes * stage.blocks.size() + 2;
      stages.push_back(std::move(stage));
    }
    std::uint32_t gradient = add(10, kOutputBytes);
    connect(value, gradient);
    for (std::size_t s = stages.size(); s-- > 0;) {
      std::vector<std::uint32_t> parts{gradient};
      for (std::size_t b = stages[s].blocks.size(); b-- > 0;)
        parts.push_back(backward(stages[s].blocks[b], stages[s].input, gradient));
      gradient = add(between(8, 25), kOutputBytes);
      for (const std::uint32_t part : parts) connect(part, gradient);
    }
    graph_.set_edges(edges_);
    return std::move(graph_);
  }

 private:
  std::mt19937_64 random_;
  PlacementGraph graph_;
  std::vector<PlacementEdge> edges_;
};

}  // namespace

PlacementGraph synthetic_graph(std::size_t nodes, std::uint64_t seed) { return Builder(seed).build(nodes); }

}  // namespace epocast
