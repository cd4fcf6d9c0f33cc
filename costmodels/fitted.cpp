#include "costmodels/fitted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "costmodels/layer_kernels.hpp"
#include "costmodels/roofline.hpp"

namespace epocast {
namespace {

constexpr double kMemoryEfficiency = 0.8;  // as the roofline's default
constexpr Seconds kOverhead{5e-6};         // engineering estimate of a kernel launch
constexpr KernelPass kPasses[] = {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights};

struct Chosen {
  const KernelFit* fit = nullptr;
  KernelWork work;
  double share = 1;  ///< of the fit's time; more than 1 where the kernel is repeated
};

/// Fits of memory-bound layers hold only for the kinds that were measured.
bool knows_kind(const Chosen& chosen) {
  if (chosen.fit == nullptr || chosen.fit->family != "memory") return chosen.fit != nullptr;
  return chosen.fit->find_class(chosen.work.kernel_class) != nullptr;
}

// Backward over forward rate of fused attention, both counted with their own FLOP: of the A100 PCIe and B200 in
// measurements/*_bf16.csv, causal, 128 features: 0.86 and 1.09; 0.73 where heads of keys have 192 features. Assumed
// where backward was not measured.
constexpr double kAttentionBackwardRate = 0.86;

/// Whose rate a kind of kernel has where it was not measured; null if no other's.
const char* stand_in(const std::string& op) {
  if (op == "loss") return "softmax";
  if (op == "gradient_sum") return "add";
  if (op == "batch_norm_3d") return "batch_norm";
  return nullptr;
}

/// Where every access is counted (layer_kernels.hpp), a kind's fit holds for any pass: that of the pass, of both
/// gradients together, or of the forward pass.
Chosen choose_by_accesses(const ComputeCalibration& calibration, MemoryShape memory, KernelPass pass) {
  const auto choice = [&](KernelPass fitted) {
    const double share = fitted == KernelPass::backward ? 0.5 : 1;
    return Chosen{calibration.find("memory", fitted), kernel_work({memory, fitted}), share};
  };
  if (const Chosen own = choice(pass); knows_kind(own)) return own;
  if (pass != KernelPass::forward)
    if (const Chosen both = choice(KernelPass::backward); knows_kind(both)) return both;
  const Chosen forward = choice(KernelPass::forward);
  const char* other = stand_in(memory.op);
  if (knows_kind(forward) || other == nullptr) return forward;
  memory.op = other;
  return choose_by_accesses(calibration, memory, pass);
}

/// The fit for a kernel; none if there is none, not even one of both gradients together (of memory-bound layers, some
/// kinds' gradients may be measured apart and others', such as normalisation's, together).
Chosen choose(const ComputeCalibration& calibration, KernelShape shape) {
  if (auto* memory = std::get_if<MemoryShape>(&shape.of);
      memory != nullptr && calibration.rates.precision != Precision::fp32)
    return choose_by_accesses(calibration, *memory, shape.pass);
  const Chosen own{calibration.find(shape.family(), shape.pass), kernel_work(shape), 1};
  if (knows_kind(own)) return own;
  if (std::holds_alternative<AttentionShape>(shape.of)) {
    const KernelFit* forward = calibration.find("attention", KernelPass::forward);
    return {forward, kernel_work(shape), 1 / kAttentionBackwardRate};
  }
  if (const auto* recurrent = std::get_if<RecurrentShape>(&shape.of)) {
    const RepeatedGemm steps = as_products(*recurrent, shape.pass);
    const KernelFit* fit = calibration.find("gemm", shape.pass);
    return {fit, kernel_work({steps.shape, shape.pass}), steps.repeats};
  }
  Chosen both;
  if (shape.pass != KernelPass::forward) {
    KernelShape gradients = shape;
    gradients.pass = KernelPass::backward;
    both = {calibration.find(shape.family(), KernelPass::backward), kernel_work(gradients), 0.5};
    if (knows_kind(both)) return both;
  }
  if (auto* memory = std::get_if<MemoryShape>(&shape.of); memory != nullptr && stand_in(memory->op) != nullptr) {
    memory->op = stand_in(memory->op);
    return choose(calibration, shape);
  }
  return own.fit == nullptr && shape.pass != KernelPass::forward ? both : own;
}

bool computes(const KernelShape& shape) { return std::string(shape.family()) != "memory"; }

}  // namespace

Fitted::Fitted(ComputeCalibration calibration, std::string name, Optimizer optimizer, const Model& model,
               const Device& device, UpdateKernels update_kernels, FittedSettings settings)
    : calibration_(std::move(calibration)),
      name_(std::move(name)),
      optimizer_(optimizer),
      update_kernels_(update_kernels),
      settings_(settings),
      model_(model),
      device_(device) {
  has_norms_ = std::ranges::any_of(model_.layers, [](const Layer& l) { return l.kind == LayerKind::layer_norm; });
  if (settings_.framework.batch_norm == BatchNormKernels::fused) {
    const std::vector<FusedNorm> fused = fused_norms(model_);
    for (std::size_t i = 0; i < fused.size(); ++i)
      if (fused[i] != FusedNorm::no) fused_norms_.emplace(model_.layers[i].name, fused[i]);
  }
  for (const Layer& layer : model_.layers)
    for (const KernelPass pass : kPasses)
      for (const LayerKernel& kernel : kernels_of(layer, 1, pass))
        if (computes(kernel.shape) && choose(calibration_, kernel.shape).fit == nullptr)
          throw ConfigError(
              fmt::format("calibration '{}' has no {} times of operator {}, which layer '{}' of model '{}' needs; "
                          "measure it, or use another cost model",
                          name_, to_string(pass), kernel.shape.family(), layer.name, model_.name));
}

/// The layer as a whole if its kind was measured so, else what it is made of.
std::vector<LayerKernel> Fitted::kernels_of(const Layer& layer, std::int64_t batch, KernelPass pass) const {
  const auto whole = layer_kernel(layer, batch, pass);
  const bool in_parts = calibration_.rates.precision != Precision::fp32;
  if (!whole && !in_parts) return {};
  KernelStyle style =
      kernel_style(calibration_.rates.precision, calibration_.find("attention", KernelPass::forward) != nullptr);
  style.framework = settings_.framework;
  style.has_norms = has_norms_;
  if (const auto found = fused_norms_.find(layer.name); found != fused_norms_.end()) style.fused_norm = found->second;
  if (!in_parts && !framework_decides(layer, style) && knows_kind(choose(calibration_, *whole))) return {{*whole, 1}};
  return layer_kernels(layer, batch, pass, style);
}

FlopPerSecond Fitted::nominal_rate() const {
  return calibration_.rates.peak_rate / (calibration_.efficiency * calibration_.product_share);
}

/// What convolutions and attention cannot be below, whatever a fit of other sizes, or of another chip, makes of them:
/// on matrix units, the chip's peak. Plain cores have algorithms with fewer operations; products have their share.
double Fitted::least_time(const KernelFit& fit, const KernelWork& work) const {
  const bool bounded = fit.family == "convolution" || fit.family == "attention";
  return bounded && calibration_.rates.precision != Precision::fp32 ? work.flop / nominal_rate().value : 0;
}

Seconds Fitted::time(const KernelShape& kernel) const {
  const Chosen chosen = choose(calibration_, kernel);
  const double faster = computes(kernel) ? settings_.product_rate : settings_.memory_rate;
  if (knows_kind(chosen)) {
    const double fitted = chosen.fit->time(chosen.work, calibration_.rates);
    return Seconds(chosen.share * std::max(fitted, least_time(*chosen.fit, chosen.work)) / faster);
  }
  const KernelWork work = kernel_work(kernel);
  return kOverhead + Seconds(moved_bytes(work, calibration_.rates) /
                             (kMemoryEfficiency * settings_.memory_rate * calibration_.rates.memory_bandwidth.value));
}

Seconds Fitted::time(const Layer& layer, std::int64_t batch, KernelPass pass) const {
  Seconds sum{0};
  for (const LayerKernel& kernel : kernels_of(layer, batch, pass)) sum += kernel.repeats * time(kernel.shape);
  return sum;
}

Seconds Fitted::update(const Layer& layer) const {
  if (layer.parameter_count() == 0) return Seconds(0);
  const std::int64_t parameters = update_kernels_.fused() ? update_kernels_.parameters() : layer.parameter_count();
  MemoryShape moved{std::string("update_") + to_string(optimizer_), optimizer_accesses(optimizer_) * parameters};
  // A kernel for each operation moves data as additions do, in fp32 whatever the network's format.
  if (update_kernels_.by_operation())
    moved = {"add", std::llround(update_kernels_.accesses(optimizer_) * static_cast<double>(parameters) * 4 /
                                 bytes_per_value(calibration_.rates.precision))};
  const Chosen measured_update = choose(calibration_, {moved, KernelPass::forward});
  if (knows_kind(measured_update)) {
    const Seconds kernel(measured_update.fit->time(measured_update.work, calibration_.rates) / settings_.memory_rate);
    return update_kernels_.fused() ? update_kernels_.share(layer) * kernel : kernel;
  }
  Device measured = device_;
  measured.memory_bandwidth = settings_.memory_rate * calibration_.rates.memory_bandwidth;
  return kOverhead * update_kernels_.launches(layer) +
         update_time(layer, measured, update_kernels_.accesses(optimizer_), kMemoryEfficiency);
}

PassTimes Fitted::times(const Layer& layer, std::int64_t batch, const Device& /*device*/) const {
  PassTimes times;
  times.forward = time(layer, batch, KernelPass::forward);
  times.backward_data = time(layer, batch, KernelPass::backward_data);
  times.backward_weights = time(layer, batch, KernelPass::backward_weights);
  times.update = update(layer);
  return times;
}

PassKernels Fitted::kernels(const Layer& layer, std::int64_t batch) const {
  const auto count = [&](KernelPass pass) {
    double sum = 0;
    for (const LayerKernel& kernel : kernels_of(layer, batch, pass)) sum += kernel.started();
    return sum;
  };
  return {count(KernelPass::forward), count(KernelPass::backward_data), count(KernelPass::backward_weights)};
}

bool Fitted::loss_in_fp32() const { return settings_.framework.loss != LossKernels::fused; }

std::string Fitted::basis() const {
  const std::string kernels = in_words(settings_.framework);
  return fmt::format(
      "calibration '{}'{}{}", name_,
      calibration_.scaled_from.empty() ? "" : ", that is '" + calibration_.scaled_from + "' at other rates",
      kernels.empty() ? "" : ", with " + kernels);
}

std::vector<std::string> Fitted::caveats(std::int64_t batch) const {
  std::vector<std::string> out;
  if (!calibration_.scaled_from.empty())
    out.push_back(fmt::format(
        "calibration '{}' is scaled from '{}' by nominal rates, not measured: {}", name_, calibration_.scaled_from,
        calibration_.expected_error ? fmt::format("expect errors of about {:.0f} %", 100 * *calibration_.expected_error)
                                    : "how large its errors are is not known"));
  const FlopPerSecond peak = device_.matrix_rate(calibration_.rates.precision);
  const FlopPerSecond nominal = nominal_rate();
  const double ratio = peak.value / nominal.value;
  if (ratio > 0 && std::abs(std::log(ratio)) > std::log(1.25))
    out.push_back(fmt::format("calibration '{}' is for {} ({}); the platform's device has {}", name_,
                              calibration_.device, to_string(nominal), to_string(peak)));
  const BytesPerSecond memory = calibration_.rates.memory_bandwidth / calibration_.efficiency;
  const double other = device_.memory_bandwidth / memory;
  if (other > 0 && std::abs(std::log(other / settings_.memory_rate)) > std::log(1.1))
    out.push_back(fmt::format(
        "calibration '{}' is for memory of {}, the platform's device has {}; memory_rate: {:.3g} would say so", name_,
        to_string(memory), to_string(device_.memory_bandwidth), other));
  if (calibration_.rates.precision == Precision::fp32 && device_.matrix_rate(Precision::tf32).value > 0)
    out.push_back(
        fmt::format("fp32 means the plain cores of {}; PyTorch's convolutions and all of TensorFlow's products are "
                    "tf32 there unless told not to be, which precision: tf32 says",
                    device_.model));
  const bool attends = std::ranges::any_of(model_.layers, [](const Layer& layer) {
    return layer.kind == LayerKind::attention && layer.backward_reads_output;  // fused
  });
  if (attends && calibration_.find("attention", KernelPass::forward) != nullptr &&
      calibration_.find("attention", KernelPass::backward) == nullptr)
    out.push_back(
        fmt::format("calibration '{}' has no backward pass of fused attention: assumed at {:.2f} of the forward rate",
                    name_, kAttentionBackwardRate));
  int with_products = 0;
  std::vector<std::string> far;
  std::map<const KernelFit*, MeasuredSizes> sizes;
  const auto extrapolates = [&](const Chosen& chosen) {
    if (chosen.fit == nullptr) return true;
    const auto [place, is_new] = sizes.try_emplace(chosen.fit);
    if (is_new) place->second = chosen.fit->measured_sizes();
    return chosen.fit->extrapolates(chosen.work, place->second, calibration_.rates);
  };
  for (const Layer& layer : model_.layers) {
    bool is_far = false;
    bool has_products = false;
    for (const KernelPass pass : kPasses)
      for (const LayerKernel& kernel : kernels_of(layer, batch, pass)) {
        if (!computes(kernel.shape)) continue;
        has_products = true;
        is_far = is_far || extrapolates(choose(calibration_, kernel.shape));
      }
    if (has_products) ++with_products;
    if (is_far) far.push_back(layer.name);
  }
  if (!far.empty())
    out.push_back(fmt::format(
        "batch {}: {} of {} layers with products lie outside what calibration '{}' measured, first '{}'; their "
        "times are extrapolated by formula",
        batch, far.size(), with_products, name_, far.front()));
  return out;
}

}  // namespace epocast
