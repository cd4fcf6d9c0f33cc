#include "strategies/partitioners/contiguous_split.hpp"

#include <catch2/catch.hpp>

#include "tests/support/synthetic.hpp"

namespace epocast::contiguous_split_test {

namespace {

/// Layers that take 1, 2, 3 and 4 s and hand on 1 MB each (tests/support/synthetic.hpp), without parameters.
WorkloadTrace four_layers() {
  using testing::layer;
  return testing::chain(
      {layer("a", 1, 0, 0, {}), layer("b", 2, 0, 0, {}), layer("c", 3, 0, 0, {}), layer("d", 4, 0, 0, {})});
}

std::vector<std::size_t> boundaries(const ContiguousSplit& split) {
  std::vector<std::size_t> out;
  for (const PipelineStage& stage : split.stages) out.push_back(stage.last);
  return out;
}

}  // namespace

TEST_CASE("two stages balance the time") {
  // 1+2+3 against 4 is the best of the three cuts; the link needs 2 x 1 MB / 1 GB/s = 2 ms. The input is layer 0.
  const ContiguousSplit split =
      split_contiguous(four_layers(), {.devices = 2, .stages = 2, .bandwidth = BytesPerSecond(1e9)});
  CHECK(split.slowest.value == 6);
  CHECK(boundaries(split) == std::vector<std::size_t>{4, 5});
  CHECK(split.sent.value == 1e6);
}

TEST_CASE("a slow link keeps layers together") {
  // 2 x 1 MB at 200 kB/s take 10 s, as long as all computation: nothing is gained by cutting, and not cutting sends
  // less.
  const ContiguousSplit split = split_contiguous(four_layers(), {.devices = 4, .bandwidth = BytesPerSecond(2e5)});
  CHECK(split.slowest.value == 10);
  CHECK(split.stages.size() == 1);
  CHECK(split.sent.value == 0);
}

TEST_CASE("replicas share batches and reduce gradients") {
  // Without parameters, four replicas of everything take 10 / 4 s. No pipeline of four stages beats 4 s.
  const SplitOptions options{.devices = 4, .stages = {}, .replicate = true, .bandwidth = BytesPerSecond(1e9)};
  const ContiguousSplit free = split_contiguous(four_layers(), options);
  CHECK(free.slowest.value == 2.5);
  CHECK(free.stages.front().replicas == 4);

  // 3 GB of parameters in d make an all-reduce among m replicas 2 (m - 1) x 3 s. d on one device takes 4 s; on two,
  // max(4, 6) / 2 = 3 s. a to c on the other two take 6 / 2 = 3 s.
  WorkloadTrace heavy = four_layers();
  heavy.layers.back().parameters = Bytes(3e9);
  const ContiguousSplit split = split_contiguous(heavy, options);
  CHECK(split.slowest.value == 3);
  CHECK(boundaries(split) == std::vector<std::size_t>{4, 5});
  CHECK(split.stages[0].replicas == 2);
  CHECK(stage_time(heavy, 4, 5, 2, options.bandwidth).value == 3);
}

TEST_CASE("a branch crosses every boundary up to its reader") {
  WorkloadTrace trace = four_layers();
  trace.layers[4].inputs = {1, 3};  // d adds a to c
  const std::vector<Bytes> cut = cut_bytes(trace);
  CHECK(cut[0].value == 1e6);
  CHECK(cut[1].value == 1e6);  // a, read by b and d
  CHECK(cut[2].value == 2e6);  // a and b
  CHECK(cut[3].value == 2e6);  // a and c
  CHECK(cut[4].value == 0);
}

TEST_CASE("what cannot be split is explained") {
  const auto message = [](const SplitOptions& options) -> std::string {
    try {
      split_contiguous(four_layers(), options);
    } catch (const SplitError& error) {
      return error.what();
    }
    return "no error";
  };
  const BytesPerSecond fast(1e9);
  CHECK(message({.devices = 3, .stages = 4, .bandwidth = fast}) == "4 stages need 4 devices, but there are 3");
  CHECK(message({.devices = 9, .stages = 5, .bandwidth = fast}) == "5 stages, but only 4 layers take time");
  // Each layer keeps 1 MB. In the fastest split, a to c are 3 layers, and the input belongs to them.
  const SplitOptions tight{
      .devices = 2, .stages = 2, .bandwidth = fast, .memory = Bytes(2e6), .memory_of = [](const StagePosition& p) {
        return Bytes(1e6 * double(p.last - p.first));
      }};
  CHECK(message(tight) ==
        "no split over 2 devices keeps every stage within 1.907 MiB of memory; in the fastest one, the stage from "
        "'data' to 'c' needs 3.815 MiB, 1.907 MiB too much");
}

}  // namespace epocast::contiguous_split_test
