// Roofline times of layers along sequences, from its formula: a device of 1 FLOP/s and 4 B/s (one value a second) makes
// FLOP and values readable as seconds.
#include <catch2/catch.hpp>

#include <string>

#include "costmodels/roofline.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::model_roofline_test {

namespace {

Device slow_device(double flop_rate, double values_per_second) {
  Device device;
  device.name = "slow";
  device.peak_rate = FlopPerSecond(flop_rate);
  device.memory_bandwidth = BytesPerSecond(4 * values_per_second);
  return device;
}

const Roofline kIdeal({.efficiency = 1, .memory_efficiency = 1, .overhead = Seconds(100)});

Model parse(const std::string& layers) {
  return parse_model("model: test\ninput: {channels: 1, width: 5}\nlayers:\n" + layers, "m.yaml");
}

}  // namespace

TEST_CASE("an embedding moves the rows that it looks up, at most its table") {
  const Model model = parse("  - {embedding: e, vocabulary: 1000, units: 6}\n");
  const Layer& table = model.layers[1];
  // 5 tokens in, 30 values of rows read, 30 written.
  CHECK(kIdeal.times(table, 1, slow_device(1e12, 1)).forward.value == Approx(100 + 5 + 30 + 30));
  CHECK(kIdeal.times(table, 1, slow_device(1e12, 1)).backward_weights.value == Approx(100 + 65));
  CHECK(kIdeal.times(table, 1000, slow_device(1e12, 1)).forward.value == Approx(100 + 1000 * 35 + 6000));
}

TEST_CASE("an LSTM is one kernel per step, which reads all weights") {
  const Model model = parse("  - {embedding: e, vocabulary: 10, units: 6}\n  - {lstm: r, units: 3}\n");
  const Layer& lstm = model.layers[2];
  const double parameters = 4 * 3 * (6 + 3) + 4 * 3;
  const double values = 2 * (30 + 15 + 2 * 75);  // two samples: input, output, gates and cells written and read
  CHECK(kIdeal.times(lstm, 2, slow_device(1e12, 1)).forward.value == Approx(5 * 100 + values + 5 * parameters));
  CHECK(kIdeal.times(lstm, 2, slow_device(1, 1e12)).forward.value == Approx(5 * 100 + 2 * lstm.forward_flop));
}

TEST_CASE("a shared weight is read but not updated; rearranging costs a copy in both directions") {
  const Model model = parse(
      "  - {embedding: e, vocabulary: 50, units: 6}\n"
      "  - {select: s, positions: 2}\n"
      "  - {linear: l, units: 50, bias: false, tied: e}\n");
  const PassTimes linear = kIdeal.times(model.layers[3], 1, slow_device(1e12, 1));
  CHECK(linear.forward.value == Approx(100 + 12 + 100 + 300));
  CHECK(linear.update.value == 0);
  const PassTimes select = kIdeal.times(model.layers[2], 1, slow_device(1e12, 1));
  CHECK(select.forward.value == Approx(100 + 30 + 12));
  CHECK(select.backward_data.value == select.forward.value);
}

}  // namespace epocast::model_roofline_test
