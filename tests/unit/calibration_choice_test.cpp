// Which calibrations are of a device: by the name of its chip, of the precision, measured before scaled.
#include "costmodels/calibration_choice.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "costmodels/compute_calibration.hpp"

namespace epocast::calibration_choice_test {

namespace {

const auto kFolder = std::filesystem::path(EPOCAST_SOURCE_DIR) / "costmodels" / "calibrations";

Device device(const std::string& model, const std::string& like = "") {
  Device out;
  out.model = Name(model);
  out.kernels_like = Name(like);
  return out;
}

std::vector<std::string> of(const std::string& model, Precision precision) {
  return calibrations_of(device(model), precision, kFolder);
}

}  // namespace

TEST_CASE("names of one chip: boards, sizes of memory and machines do not count, generations do") {
  CHECK(same_chip("NVIDIA V100 (DGX-1)", "NVIDIA Tesla V100 SXM2 16GB"));
  CHECK(same_chip("NVIDIA P100 (PCIe)", "NVIDIA Tesla P100 SXM2 16GB"));
  CHECK(same_chip("NVIDIA A100 SXM4 80GB", "NVIDIA A100 PCIe 40GB"));
  CHECK(same_chip("2x Intel Xeon E5-2698 v3", "Intel Xeon E5-2698 v3"));
  CHECK_FALSE(same_chip("2x Intel Xeon E5-2698 v3", "2x Intel Xeon E5-2698 v4"));
  CHECK_FALSE(same_chip("NVIDIA A100 SXM4 80GB", "NVIDIA H100 SXM5 80GB"));
  CHECK_FALSE(same_chip("NVIDIA RTX 3090", "NVIDIA RTX 2080 Ti"));
  CHECK_FALSE(same_chip("NVIDIA A40", "NVIDIA A100 PCIe 40GB"));
  CHECK_FALSE(same_chip("synthetic", "synthetic"));
  CHECK_FALSE(same_chip("Google TPU v3 (one of two cores)", "Intel Xeon E5-2698 v3"));
}

TEST_CASE("the first calibration of a device is measured, of no other chip, and of no other library than the usual") {
  CHECK(of("NVIDIA Tesla V100 SXM2 16GB", Precision::fp32).front() == "v100");
  CHECK(of("NVIDIA Tesla V100 SXM2 16GB", Precision::fp16).front() == "v100_fp16");
  CHECK(of("NVIDIA A100 SXM4 80GB", Precision::bf16).front() == "a100_bf16");
  CHECK(of("NVIDIA H100 SXM5 80GB", Precision::bf16).front() == "h100_bf16");
  CHECK(of("NVIDIA H100 SXM5 80GB", Precision::fp8).front() == "h100_fp8");
  CHECK(of("NVIDIA B200", Precision::bf16).front() == "b200_bf16");
  CHECK(of("NVIDIA GB200 (one of two B200 of a superchip)", Precision::fp16).front() == "gb200_bf16");
  CHECK(of("NVIDIA Tesla K80 (one GK210 of two)", Precision::fp32).front() == "k80");
  CHECK(of("NVIDIA L40S", Precision::fp32).empty());
  CHECK(of("one core of a server Xeon with AVX2", Precision::fp32).empty());
  CHECK(of("NVIDIA Titan X (Maxwell)", Precision::fp32) == std::vector<std::string>{"titan_x_maxwell"});
}

TEST_CASE("kernels of a device like it stand in for those of one that was never measured, never for its own") {
  const auto stand_in = [](const Device& of, Precision precision) { return stand_ins_for(of, precision, kFolder); };
  const Device ada = device("NVIDIA RTX 6000 Ada", "NVIDIA L40S"),
               turing = device("NVIDIA Quadro RTX 6000", "NVIDIA T4");
  for (const Device& each : {ada, turing}) CHECK(calibrations_of(each, Precision::fp16, kFolder).empty());
  CHECK(stand_in(ada, Precision::bf16) == std::vector<std::string>{"l40s_bf16"});
  CHECK(stand_in(turing, Precision::fp16) == std::vector<std::string>{"t4_fp16"});
  CHECK(stand_in(ada, Precision::fp32).empty());
  // Of the same chip at other rates, which alone would do for a name without more.
  const Device card = device("NVIDIA H100 PCIe 80GB", "NVIDIA H100 SXM5 80GB");
  CHECK(calibrations_of(card, Precision::bf16, kFolder).empty());
  CHECK(stand_in(card, Precision::bf16).front() == "h100_bf16");
  CHECK(stand_in(card, Precision::tf32).front() == "h100_tf32");
  // What is measured in bf16 serves tf32 at that format's rate; what is scaled itself does not.
  CHECK(stand_in(device("NVIDIA L40S"), Precision::tf32) == std::vector<std::string>{"l40s_bf16"});
  CHECK(stand_in(device("NVIDIA RTX 3090", "NVIDIA RTX 3090"), Precision::bf16).empty());
}

TEST_CASE("fits at the rates of a device like the measured one take longer by the ratio of the rates") {
  const ComputeCalibration measured = load_compute_calibration(kFolder / "l40s_bf16.yaml");
  Device half = device("half an L40S", "NVIDIA L40S");
  half.cores = static_cast<int>(measured.rates.units);
  half.other_rates[Precision::bf16] = 0.5 * measured.rates.peak_rate;
  half.memory_bandwidth = 0.5 * measured.rates.memory_bandwidth;
  const ComputeCalibration scaled = at_rates_of(half, Precision::bf16, measured, "l40s_bf16");
  CHECK(scaled.device == "half an L40S");
  CHECK(scaled.scaled_from == "l40s_bf16");
  const KernelWork product = kernel_work({GemmShape{8192, 8192, 8192, true, false}, KernelPass::forward});
  const double here = measured.find("gemm", KernelPass::forward)->time(product, measured.rates);
  CHECK(scaled.find("gemm", KernelPass::forward)->time(product, scaled.rates) == Approx(2 * here).epsilon(0.01));
}

TEST_CASE("what only moves data does not outrun the memory, borrowed or not") {
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    if (file.path().extension() != ".yaml") continue;
    const ConfigNode root = ConfigNode::load_file(file.path());
    if (root.at("calibration").as_string() != "compute" || root.has("scaled_from")) continue;
    for (const KernelFit& fit : read_compute_calibration(root).fits) {
      if (fit.family != "memory") continue;
      const auto efficiency =
          std::ranges::find(fit.parameters, std::string("memory_efficiency"), &FittedParameter::name);
      REQUIRE(efficiency != fit.parameters.end());
      for (const auto& [kernel_class, factor] : fit.class_factors) {
        if (kernel_class == "concat") continue;  // gradients of which are views
        INFO(file.path().filename().string() << ", " << to_string(fit.pass) << " " << kernel_class);
        CHECK(efficiency->value * factor.value < 1.15);  // caches help a little
      }
    }
  }
}

TEST_CASE("of a card like the measured one products reach as large a share as the catalogue says") {
  const ComputeCalibration measured = load_compute_calibration(kFolder / "l40s_bf16.yaml");
  Device card = device("a card", "NVIDIA L40S");
  card.cores = static_cast<int>(measured.rates.units);
  card.other_rates[Precision::bf16] = measured.rates.peak_rate;
  card.memory_bandwidth = 1.005 * measured.rates.memory_bandwidth;  // as data sheets round
  CHECK(has_rates_of(card, Precision::bf16, measured));
  card.product_share = 1.5;
  CHECK_FALSE(has_rates_of(card, Precision::bf16, measured));
  const ComputeCalibration scaled = at_rates_of(card, Precision::bf16, measured, "l40s_bf16");
  CHECK(has_rates_of(card, Precision::bf16, scaled));
  const auto time = [](const ComputeCalibration& of, const KernelShape& shape) {
    return of.find(shape.family(), KernelPass::forward)->time(kernel_work(shape), of.rates);
  };
  const KernelShape product{GemmShape{8192, 8192, 8192, true, false}, KernelPass::forward};
  CHECK(time(measured, product) / time(scaled, product) == Approx(1.5).epsilon(0.03));
  const KernelShape moved{MemoryShape{"softmax", 1 << 28, 0}, KernelPass::forward};
  CHECK(time(measured, moved) / time(scaled, moved) == Approx(1.005).epsilon(0.001));
  // In fp32 there is nothing that holds a card back, or that it is free of.
  const ComputeCalibration plain = load_compute_calibration(kFolder / "v100.yaml");
  card.peak_rate = 2 * plain.rates.peak_rate;
  CHECK(at_rates_of(card, Precision::fp32, plain, "v100").rates.peak_rate.value == Approx(card.peak_rate.value));
  card.product_share = 1;
  card.memory_bandwidth = 0.9 * measured.rates.memory_bandwidth;
  CHECK_FALSE(has_rates_of(card, Precision::bf16, measured));
}

// Hopper's, Blackwell's and Ada's kernels for rows that do not begin at multiples of 16 bytes are Ampere's. On an H100
// a multiprocessor makes 393 FLOP of them in a clock (95 of 989 TFLOP/s, of 4096), so elsewhere it makes as many.
TEST_CASE(
    "products with a vocabulary of 50257 take what an H100's multiprocessors need for them, or as long as others") {
  const auto rate = [](const std::string& name, const char* kernel_class) {
    const ComputeCalibration c = load_compute_calibration(kFolder / (name + ".yaml"));
    const KernelFit& fit = *c.find("gemm", KernelPass::forward);
    const double efficiency =
        std::ranges::find(fit.parameters, std::string("efficiency"), &FittedParameter::name)->value;
    return efficiency * fit.find_class(kernel_class)->value;
  };
  struct Chip {
    const char* calibration;
    double flop_per_clock;  ///< of a multiprocessor's matrix units
  };
  for (const char* rows : {"nn 2 B", "nt 2 B", "tn 2 B", "nn 4 B", "nt 4 B", "tn 4 B"}) {
    const double h100 = 4096 * rate("h100_bf16", rows);
    for (const Chip& chip : {Chip{"a100_bf16", 2048},
                             {"a100_pcie_bf16", 2048},
                             {"a40_bf16", 1024},
                             {"l40s_bf16", 1024},
                             {"b200_bf16", 8192},
                             {"gb200_bf16", 8192}}) {
      CAPTURE(chip.calibration, rows);
      const double others = chip.flop_per_clock * rate(chip.calibration, std::string(rows).substr(0, 2).c_str());
      CHECK(chip.flop_per_clock * rate(chip.calibration, rows) == Approx(std::min(h100, others)).epsilon(0.002));
    }
  }
}

}  // namespace epocast::calibration_choice_test
