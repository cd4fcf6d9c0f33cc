// What one device's calibration lacks is taken from another's in proportion.
#include <catch2/catch.hpp>

#include "costmodels/borrowed_fits.hpp"

namespace epocast::borrowed_fits_test {

namespace {

const AttentionShape kAttention{.batch = 1,
                                .heads = 8,
                                .kv_heads = 8,
                                .queries = 512,
                                .keys = 512,
                                .key_features = 64,
                                .value_features = 64,
                                .causal = true};

KernelFit fit(const std::string& family, KernelPass pass, double constant,
              std::vector<std::pair<std::string, double>> factors) {
  KernelFit out;
  out.family = family;
  out.pass = pass;
  for (const FitParameter& p : kernel_parameters(family, Precision::bf16))
    out.parameters.push_back({p.name, p.unit, constant, constant, constant});
  for (const auto& [name, value] : factors)
    out.class_factors.emplace_back(name, FittedParameter{name, "", value, value, value});
  const KernelShape shape =
      family == "gemm" ? KernelShape{GemmShape{64, 64, 64, true, false}, pass} : KernelShape{kAttention, pass};
  out.points = {{shape, Seconds(1e-5)}};
  out.residuals = ResidualInterpolation({.lengths = std::vector<double>(5, 1.0)}, {}, {});  // of 5 coordinates each
  return out;
}

}  // namespace

TEST_CASE("class factors and passes that were not measured are borrowed in proportion") {
  ComputeCalibration own, other;
  own.rates = other.rates = {FlopPerSecond(1e14), BytesPerSecond(1e12), 100, Precision::bf16};
  other.device = "elsewhere";
  own.fits = {fit("gemm", KernelPass::forward, 0.5, {{"tn", 1.2}}),
              fit("attention", KernelPass::forward, 0.6, {{"causal", 1}})};
  other.fits = {fit("gemm", KernelPass::forward, 0.7, {{"nn", 0.9}, {"tn", 1.0}}),
                fit("attention", KernelPass::forward, 0.4, {{"causal", 1}}),
                fit("attention", KernelPass::backward, 0.2, {{"causal", 1}})};
  CHECK(borrow_missing(own, other, "donor") == "gemm nn, attention backward");
  // tn is 1.2 here and 1.0 there: nn is 0.9 * 1.2 here.
  REQUIRE(own.fits[0].class_factors.size() == 2);
  CHECK(own.fits[0].class_factors[1].second.value == Approx(1.08));
  CHECK(own.fits[0].parameters[1].value == 0.5);  // its own
  // Backward is half of forward there, so here: 0.2 * 0.6 / 0.4.
  const KernelFit* backward = own.find("attention", KernelPass::backward);
  REQUIRE(backward != nullptr);
  CHECK(backward->parameters[1].value == Approx(0.3));
  CHECK(backward->borrowed_from == "donor");
  CHECK(backward->extrapolates(kernel_work({kAttention, KernelPass::backward}), own.rates));
  CHECK_FALSE(own.fits[1].extrapolates(kernel_work({kAttention, KernelPass::forward}), own.rates));
  CHECK(borrow_missing(own, other, "donor").empty());  // nothing is missing any more

  // Of one device, kernels that move data have the rates measured there, 2 times 0.7 of an efficiency of 0.5. Backward
  // is as it was.
  ComputeCalibration same;
  same.rates = other.rates;
  same.device = other.device = "d";
  same.fits = {fit("gemm", KernelPass::forward, 0.5, {{"tn", 1.2}}),
               fit("attention", KernelPass::forward, 0.6, {{"causal", 1}}),
               fit("memory", KernelPass::forward, 0.5, {{"add", 0.1}})};
  other.fits.push_back(fit("memory", KernelPass::forward, 0.7, {{"add", 1}, {"loss", 3}, {"softmax", 2}}));
  CHECK(borrow_missing(same, other, "donor") == "gemm nn, attention backward, memory loss, memory softmax");
  CHECK(same.fits[0].class_factors[1].second.value == Approx(1.08));
  CHECK(same.fits[2].class_factors[1].second.value == Approx(4.2));
  CHECK(same.fits[2].class_factors[2].second.value == Approx(2.8));
  const KernelFit* as_it_was = same.find("attention", KernelPass::backward);
  REQUIRE(as_it_was != nullptr);
  CHECK(as_it_was->parameters[1].value == 0.2);
  CHECK(as_it_was->borrowed_from.empty());
  CHECK_FALSE(as_it_was->extrapolates(kernel_work({kAttention, KernelPass::backward}), same.rates));

  // Of another device, kernels that move data have the factor in whose favour most bytes are: three times the fit's 2,
  // as large ones took a third of what it says. More, but small ones took three times as long.
  ComputeCalibration elsewhere = own, donor = other;
  elsewhere.fits = {fit("memory", KernelPass::forward, 0.7, {{"add", 1}})};
  KernelFit measured = fit("memory", KernelPass::forward, 0.7, {{"add", 1}, {"softmax", 2}});
  for (const std::int64_t values : {1000, 2000, 3000, 4000, 50'000, 60'000}) {
    const KernelShape shape{MemoryShape{"softmax", values}, KernelPass::forward};
    const double formula = measured.physical_time(kernel_work(shape), donor.rates);
    measured.points.push_back({shape, Seconds(values > 4000 ? formula / 3 : 3 * formula)});
  }
  donor.fits = {measured};
  CHECK(borrow_missing(elsewhere, donor, "donor") == "memory softmax");
  CHECK(elsewhere.fits[0].class_factors[1].second.value == Approx(6));

  // The file keeps it.
  own.device = "d";
  own.source = "s";
  const ComputeCalibration again = read_compute_calibration(ConfigNode::load_text(to_yaml(own), "again.yaml"));
  REQUIRE(again.find("attention", KernelPass::backward) != nullptr);
  CHECK(again.find("attention", KernelPass::backward)->borrowed_from == "donor");
  CHECK(again.find("attention", KernelPass::backward)->parameters[1].value == Approx(0.3));
}

}  // namespace epocast::borrowed_fits_test
