// What a step was put together from, in words, whatever it was asked for as.
#include <catch2/catch.hpp>

#include <string>

#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::composition_text_test {

TEST_CASE("a preset says which composition it became") {
  const testing::Star star(8, 1e9, 1e-6);
  const auto text = [&](const std::string& strategy, const std::string& options) {
    return testing::compile_transformer(star.cluster(), 8, strategy, options, {testing::small_transformer(4), 32})
        .composition;
  };
  CHECK(text("ddp", "{}") == "mesh {data: 8}, body whole, synchronisation all_reduce");
  CHECK(text("zero1", "{}") == "mesh {data: 8}, body whole, synchronisation sharded");
  CHECK(text("data_parallel", "{accumulation: 2}") ==
        "mesh {data: 8}, schedule 1f1b of 2 micro-batches, body whole, synchronisation all_reduce");
  CHECK(text("gpipe", "{stages: 2, micro_batches: 4}") ==
        "mesh {pipeline: 2, data: 4}, schedule gpipe of 4 micro-batches, body whole, synchronisation all_reduce");
  CHECK(text("megatron", "{tensor: 2, context: 2, micro_batches: 2, distributed_optimizer: true}") ==
        "mesh {data: 2, context: 2, tensor: 2}, schedule 1f1b of 2 micro-batches, body context and tensor, "
        "synchronisation sharded");
  CHECK(text("filter_parallel", "{in_flight: 2}") ==
        "mesh {tensor: 8}, schedule threaded of 2 batches in flight, body filters, synchronisation none");
  CHECK(text("layerwise", "{exchange: sharded_servers}") ==
        "mesh {tensor: 8}, body layerwise, synchronisation sharded_servers");
  CHECK(text("operators", "{devices: 2, bandwidth: 1 GB/s, nodes: passes, method: in_turn}") ==
        "mesh {data: 4, tensor: 2}, body operators, synchronisation all_reduce");
}

}  // namespace epocast::composition_text_test
