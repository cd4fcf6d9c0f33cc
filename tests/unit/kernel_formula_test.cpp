// The formulas of half-precision kernels, by hand on devices of few units.
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "costmodels/kernel_fit.hpp"
#include "costmodels/kernel_formula.hpp"

namespace epocast::kernel_formula_test {

namespace {

constexpr double kNoLimit = 1e30;

/// 4 units of 1 TFLOP/s each.
const DeviceRates kFour{FlopPerSecond(4e12), BytesPerSecond(kNoLimit), 4, Precision::bf16};

double product(double m, double n, double k, const std::vector<double>& constants, double count = 1) {
  const KernelShape shape{GemmShape{static_cast<std::int64_t>(m), static_cast<std::int64_t>(n),
                                    static_cast<std::int64_t>(k), true, false, static_cast<std::int64_t>(count)},
                          KernelPass::forward};
  return kernel_time(KernelFormula::tiles, constants, 1, kernel_work(shape), kFour);
}

// overhead, efficiency, memory efficiency, fill, on-chip bandwidth, whole waves, split, quantise
std::vector<double> constants(double overhead, double fill, double whole) {
  return {overhead, 1, 1, fill, kNoLimit, whole, 1, 1};
}

}  // namespace

TEST_CASE("batch normalisation is alike for as many channels to the next power of two") {
  const auto kind = [](std::int64_t channels) {
    return kernel_work({MemoryShape{"batch_norm", 1000, channels}, KernelPass::forward}).kind;
  };
  CHECK(kind(64) == "batch_norm 64");
  CHECK(kind(96) == kind(64));
  CHECK(kind(128) != kind(64));
  CHECK(kind(0) == "batch_norm");  // unknown
  const KernelShape shape{MemoryShape{"batch_norm", 1000, 96}, KernelPass::forward};
  CHECK(shape.text() == "op=batch_norm values=1000 channels=96");
  CHECK(parse_kernel_shape("memory", "forward", shape.text()).text() == shape.text());
}

TEST_CASE("a product that fills the units once takes one wave; one more column starts another of smaller tiles") {
  // 256 x 512 is four tiles of 256 x 128, one for each unit: k steps of 2 * 256 * 128 FLOP at 1 TFLOP/s.
  const double wave = 1024 * 2.0 * 256 * 128 / 1e12;
  const auto c = constants(1e-6, 1e-9, 1e12);
  CHECK(product(256, 512, 1024, c) == Approx(1e-6 + wave + 1e-9).epsilon(1e-9));
  // Of 513 columns five such tiles would take two waves. 64 x 64 tiles are an eighth of the work each: 4 * 9 of them on
  // four units, 9/8 of the time. Others take 5/4.
  CHECK(product(256, 513, 1024, c) == Approx(1e-6 + 9 * (wave / 8 + 1e-9)).epsilon(1e-9));
}

TEST_CASE("products whose rows do not begin at 16 bytes are kernels of their own, where those were measured") {
  const auto name = [](const GemmShape& shape, Precision precision) {
    DeviceRates rates = kFour;
    rates.precision = precision;
    return kernel_class(kernel_work({shape, KernelPass::forward}), rates);
  };
  // The rows of the result are its m values long, those of operands m or k, and k or n.
  CHECK(name({50304, 7, 1024, true, false}, Precision::bf16) == "tn");
  CHECK(name({50257, 7, 1024, true, false}, Precision::bf16) == "tn 2 B");
  CHECK(name({30522, 7, 1024, true, false}, Precision::bf16) == "tn 4 B");
  CHECK(name({30522, 7, 1024, true, false}, Precision::tf32) == "tn 8 B");
  CHECK(name({1024, 7, 50257, false, false}, Precision::bf16) == "nn 2 B");
  CHECK(name({1024, 50257, 7, false, true}, Precision::bf16) == "nt 2 B");
  CHECK(name({1000, 7, 1024, true, false}, Precision::bf16) == "tn");
  CHECK(name({50257, 7, 1024, true, false}, Precision::fp32) == "tn");  // no matrix units

  // One tile of 64 x 64 on one unit, cut into four for all: 1024 / 4 steps; a fifth of the rate takes five times that.
  KernelFit fit;
  fit.family = "gemm";
  for (const double c : constants(0, 0, 1e12)) fit.parameters.push_back({"", "", c, c, c});
  fit.class_factors = {{"tn", {"tn", "", 1, 1, 1}}, {"tn 2 B", {"tn 2 B", "", 0.2, 0.2, 0.2}}};
  const auto time = [&](std::int64_t m) {
    return fit.physical_time(kernel_work({GemmShape{m, 64, 1024, true, false}, KernelPass::forward}), kFour);
  };
  CHECK(time(64) == Approx(2.0 * 64 * 64 * 1024 / 4e12));
  CHECK(time(63) == Approx(5 * time(64)));
  fit.class_factors.pop_back();
  CHECK(time(63) == Approx(time(64)));  // nothing is known of such products
}

TEST_CASE("units that share the last wave pay for the tiles only") {
  const double wave = 1024 * 2.0 * 256 * 128 / 1e12;
  // `whole` near 0: 5 tiles of 256 x 128 are 5/4 waves, but 36 of 64 x 64 only 9/8.
  CHECK(product(256, 513, 1024, constants(0, 1e-15, 1e-12)) == Approx(9 * wave / 8).epsilon(1e-6));
  // Nothing is faster than one wave of one tile: 64 x 64 results, cut into 16 parts of k on four units.
  CHECK(product(64, 64, 1024, constants(0, 1e-15, 1e-12)) == Approx(1024 * 2.0 * 64 * 64 / 4e12).epsilon(1e-6));
}

TEST_CASE("a deep product of few results is cut along k, and pays for its partial sums") {
  DeviceRates rates = kFour;
  rates.memory_bandwidth = BytesPerSecond(1e9);
  const KernelShape shape{GemmShape{64, 64, 65536, true, false}, KernelPass::forward};
  auto c = constants(0, 0, 1e12);
  c[6] = 0;  // free
  const double free = kernel_time(KernelFormula::tiles, c, 1, kernel_work(shape), rates);
  c[6] = 1e6;
  const double dear = kernel_time(KernelFormula::tiles, c, 1, kernel_work(shape), rates);
  // Uncut it runs on one unit of four; operands and result of 2 bytes bound it from below.
  const double one_unit = 2.0 * 64 * 64 * 65536 / 1e12;
  const double bytes = 2.0 * (2 * 64 * 65536 + 64 * 64) / 1e9;
  CHECK(free == Approx(std::pow(std::pow(one_unit / 4, 4) + std::pow(bytes, 4), 0.25)));
  CHECK(dear == Approx(std::pow(std::pow(one_unit, 4) + std::pow(bytes, 4), 0.25)));
}

TEST_CASE("a kernel that only moves data takes its launch and its bytes, as often as its operation has passes") {
  const DeviceRates rates{FlopPerSecond(4e12), BytesPerSecond(1e9), 4};
  const KernelWork work = kernel_work({MemoryShape{"softmax", 250}, KernelPass::forward});  // 1000 bytes of fp32
  const std::vector<double> c{2e-6, 1, 0.5, 1, 1, 1, 1};  // launch, efficiencies, half sizes
  CHECK(kernel_time(KernelFormula::roofs, c, 1, work, rates) == Approx(4e-6));
  CHECK(kernel_time(KernelFormula::roofs, c, 0.25, work, rates) == Approx(16e-6));
}

TEST_CASE("attention counts half of the square when causal, 2.5 times the FLOP backward, and shared keys once") {
  AttentionShape s{
      .batch = 2, .heads = 8, .kv_heads = 8, .queries = 512, .keys = 512, .key_features = 64, .value_features = 64};
  const double full = kernel_work({s, KernelPass::forward}).flop;
  CHECK(full == 2.0 * 2 * 8 * 512 * 512 * 128);
  CHECK(kernel_work({s, KernelPass::backward}).flop == 2.5 * full);
  CHECK(kernel_work({s, KernelPass::forward}).bytes == 4.0 * 2 * 8 * 512 * 4 * 64);
  s.kv_heads = 2;
  CHECK(kernel_work({s, KernelPass::forward}).flop == full);
  CHECK(kernel_work({s, KernelPass::forward}).bytes == 4.0 * 2 * 512 * (2 * 8 + 2 * 2) * 64);
  s.causal = true;
  CHECK(kernel_work({s, KernelPass::forward}).flop == full * 513 / 1024);
}

TEST_CASE("few rows of attention leave units idle, and the last rows of a causal mask are the longest") {
  // overhead, efficiency, memory efficiency, fill, time per score
  const std::vector<double> c{0, 1, 1, 0, 0};
  const auto time = [&](std::int64_t heads, bool causal) {
    const AttentionShape s{.batch = 1,
                           .heads = heads,
                           .kv_heads = heads,
                           .queries = 128,
                           .keys = 128,
                           .key_features = 64,
                           .value_features = 64,
                           .causal = causal};
    return kernel_time(KernelFormula::attention, c, 1, kernel_work({s, KernelPass::forward}), kFour);
  };
  const double head = 2.0 * 128 * 128 * 128 / 1e12;  // one tile of 128 queries on one unit
  CHECK(time(4, false) == Approx(head));
  CHECK(time(1, false) == Approx(head));  // three units idle
  CHECK(time(8, false) == Approx(2 * head));
  CHECK(time(64, true) == Approx(16 * head * 129 / 256));  // half the work, if there is enough of it
}

TEST_CASE("kernels in two bytes move half of what fp32 counts") {
  const KernelWork work = kernel_work({MemoryShape{"add", 3000}, KernelPass::forward});
  CHECK(moved_bytes(work, kFour) == 6000);
  DeviceRates fp32 = kFour;
  fp32.precision = Precision::fp32;
  CHECK(moved_bytes(work, fp32) == 12000);
}

TEST_CASE("the product that a convolution amounts to has its operations, in every pass") {
  // 2 images, 12 to 20 channels in 4 groups, 3 x 5 taps, 7 x 9 pixels that stay as many: each of 2 * 20 * 63 outputs
  // sums 12 / 4 * 15 products.
  const ConvolutionShape shape{2, 12, 7, 9, 20, 3, 5, 7, 9, 1, 4};
  const double flop = 2. * (2 * 20 * 63) * (12. / 4 * 15);
  for (const KernelPass pass : {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights}) {
    const KernelWork work = kernel_work({shape, pass});
    CHECK(work.flop == flop);
    CHECK(2 * work.m * work.n * work.k == flop);
  }
  // Of the gradient of the input a value sums over the filters of its group and the taps.
  CHECK(kernel_work({shape, KernelPass::backward_data}).k == 20 / 4 * 15);
  CHECK(kernel_work({shape, KernelPass::backward}).flop == 2 * flop);
}

}  // namespace epocast::kernel_formula_test
