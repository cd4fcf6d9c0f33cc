#include "costmodels/register.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodels/calibration_choice.hpp"
#include "costmodels/compute_calibration.hpp"
#include "costmodels/corrected.hpp"
#include "costmodels/fitted.hpp"
#include "costmodels/im2col.hpp"
#include "costmodels/layer_kernels.hpp"
#include "costmodels/measured_table.hpp"
#include "costmodels/nominal_scaling.hpp"
#include "costmodels/roofline.hpp"
#include "costmodels/step_time.hpp"
#include "costmodels/timings_file.hpp"
#include "sim/config_word.hpp"
#include "sim/data_file.hpp"
#include "sim/input_memo.hpp"

namespace epocast {
namespace {

constexpr Range kFraction{1e-6, 1};

ParameterInfo step_time_parameter() {
  return {"step_time", "", "{batch: 1.., time: > 0 s}, or a list of such", "none",
          "scales forward and backward passes so that one device's step, with its update, takes this time"};
}

/// What all cost models understand.
std::vector<ParameterInfo> with_common(std::vector<ParameterInfo> own) {
  own.push_back({"scale", "", "1e-3..1e3", "1", "factor on all times"});
  own.push_back({"kernel_overhead", "s", "0..1 s", "0 s",
                 "added to every pass of every layer that takes any time; all layers share that of a fused update"});
  own.push_back(
      {"step_overhead", "s", "0..1000 s", "0 s", "added to every batch that a worker runs through the network"});
  own.push_back(step_time_parameter());
  own.push_back({"device", "", "a host", "the first worker's, or the one that the timings name",
                 "a host with the kind of device that measurements and step times are of"});
  return own;
}

EntryInfo roofline_info() {
  return {"roofline", "overhead + max(FLOP / rate, bytes / bandwidth) for each pass of each layer",
          with_common(
              {{"efficiency", "", "0..1", "0.5", "fraction of the device's peak rate that kernels reach"},
               {"memory_efficiency", "", "0..1", "0.8", "fraction of the device's memory bandwidth that kernels reach"},
               {"overhead", "s", "0..1 s", "10 us", "fixed time of every kernel"}})};
}

EntryInfo measured_info() {
  return {"measured", "times measured layer by layer, linear between measured batch sizes",
          with_common({{"timings", "", "a name in costmodels/timings, or a path to a CSV file", "required",
                        "the measurements"}})};
}

EntryInfo fitted_info() {
  return {"fitted", "a formula fitted to measured kernels of a device, with interpolation among them",
          with_common(
              {{"calibration", "", "a name in costmodels/calibrations, a path to a YAML file, or auto", "required",
                "what `epocast calibrate compute` wrote; auto: the shipped one of the platform's device"},
               {"launch", "s", "0..1 s", "the stack's",
                "what the host needs to start a kernel of a forward pass; one of a backward pass takes 0.3 of that; "
                "step_time "
                "contains it"},
               {"product_rate", "", "0.01..10", "1", "factor on the rate at which products and attention run"},
               {"memory_rate", "", "0.01..10", "1", "factor on the rate of kernels that move data, and of updates"},
               {"loss", "", "framework | vocabulary_parallel | fused", "framework",
                "kernels of a loss: a framework's, Megatron-LM's, or one for each pass"},
               {"metrics", "", "0..100", "0",
                "of language models, such as perplexity: each works out the loss once more in every forward pass"},
               {"attention", "", "fused_softmax | eager | compiled", "fused_softmax",
                "kernels of attention whose softmaxes go through memory: one for scale, mask and "
                "softmax, one each and copies of heads, or XLA's"},
               {"gelu", "", "fused | eager", "fused", "one kernel for each pass, or one for each operation"},
               {"batch_norm", "", "separate | fused", "separate",
                "a kernel each for a batch normalisation, a sum and a ReLU behind it, or one for all"},
               {"autocast", "", "true | false", "false",
                "norms, softmaxes and sums between norms are fp32 in narrower formats, and cast for products"}})};
}

EntryInfo im2col_info() {
  return {
      "im2col", "convolutions as matrix products between changes of layout; products and other layers as in `fitted`",
      with_common(
          {{"calibration", "", "a name in costmodels/calibrations, a path to a YAML file, or auto", "required",
            "what `epocast calibrate compute` wrote, with matrix products; auto: as in `fitted`"},
           {"memory_efficiency", "", "0..1", "0.8", "fraction of the memory bandwidth that changes of layout reach"},
           {"core_bandwidth", "bytes/s", ">= 1 B/s", "the whole device's",
            "of one core; layouts and other layers are then parallel over images only"}})};
}

UpdateKernels update_kernels(const CostModelContext& context) {
  UpdateKernels out = context.fused_updates ? UpdateKernels(*context.model) : UpdateKernels();
  out.set_accesses(context.update_accesses);
  return out;
}

std::unique_ptr<CostModel> make_roofline(const ConfigNode& options, const CostModelContext& context) {
  const RooflineOptions defaults;
  return std::make_unique<Roofline>(
      RooflineOptions{.efficiency = options.get("efficiency", defaults.efficiency, kFraction),
                      .memory_efficiency = options.get("memory_efficiency", defaults.memory_efficiency, kFraction),
                      .overhead = options.get("overhead", defaults.overhead, {0, 1}),
                      .optimizer = context.optimizer,
                      .update_kernels = update_kernels(context),
                      .precision = context.precision});
}

void require_precision(const ConfigNode& place, Precision measured, const CostModelContext& context) {
  if (serves(measured, context.precision)) return;
  throw place.error(fmt::format(
      "holds {} times, but the study trains in {}; name one of {}, or use cost_model: roofline, "
      "if possible with a step_time measured in {}",
      to_string(measured), to_string(context.precision), to_string(context.precision), to_string(context.precision)));
}

/// Which device was measured: the one that the measurements name, if any trains; they may go on after the name, as in
/// "V100 (DGX-1)".
const Device& measured_device(const std::string& named, const CostModelContext& context) {
  if (named.starts_with(context.device->model.text())) return *context.device;
  for (const Device* other : context.others)
    if (named.starts_with(other->model.text())) return *other;
  return *context.device;
}

std::unique_ptr<CostModel> make_measured(const ConfigNode& options, const CostModelContext& context) {
  const auto folder = context.data_dir / "costmodels" / "timings";
  require_precision(options.at("timings"), Precision::fp32, context);
  TimingsFile file = load_timings(find_data_file(options.at("timings"), {"timings", folder, ".csv"}));
  const Device& device = measured_device(file.header.at("device"), context);
  auto table =
      std::make_unique<MeasuredTable>(std::move(file), context.optimizer, device.model, update_kernels(context));
  table->check_covers(*context.model);
  return std::make_unique<NominallyScaled>(std::move(table), "timings '" + options.at("timings").as_string() + "'",
                                           device);
}

ComputeCalibration read_calibration(const ConfigNode& name, const CostModelContext& context) {
  static InputMemo<ComputeCalibration> calibrations;
  return calibrations.get(name, [&] {
    return load_compute_calibration(
        find_data_file(name, {"calibration", context.data_dir / "costmodels" / "calibrations", ".yaml"}));
  });
}

constexpr const char* kAuto = "auto";

struct ChosenCalibration {
  ConfigNode name;
  ComputeCalibration calibration;
};

/// What to do about a precision of which no kernels are known.
std::string other_precision(const CostModelContext& context, const std::filesystem::path& folder) {
  const Device& device = *context.device;
  if (context.precision != Precision::fp32 || device.matrix_rate(Precision::tf32).value <= 0 ||
      (calibrations_of(device, Precision::tf32, folder).empty() &&
       stand_ins_for(device, Precision::tf32, folder).empty()))
    return "";
  return "set precision: tf32, in which frameworks compute convolutions of fp32 there by default, or ";
}

/// The calibration that the study names, the first of the device, or the first of one with like kernels. What is not of
/// the device's own rates is taken at these.
ChosenCalibration choose_calibration(const ConfigNode& options, const CostModelContext& context) {
  if (options.has("calibration") && options.at("calibration").as_string() != kAuto)
    return {options.at("calibration"), read_calibration(options.at("calibration"), context)};
  const auto folder = context.data_dir / "costmodels" / "calibrations";
  const Device& device = *context.device;
  const std::vector<std::string> found = calibrations_of(device, context.precision, folder);
  const std::string of_device = fmt::format("of {} in {}", device.model.text(), to_string(context.precision));
  if (!options.has("calibration"))
    throw options.error(fmt::format("missing key 'calibration'; {}",
                                    found.empty() ? "there is none " + of_device + ", see `epocast list calibrations`"
                                                  : fmt::format("{}: {}", of_device, fmt::join(found, ", "))));
  const std::vector<std::string> stand_ins =
      found.empty() ? stand_ins_for(device, context.precision, folder) : std::vector<std::string>{};
  if (found.empty() && stand_ins.empty())
    throw options.at("calibration")
        .error(fmt::format("no calibration is {}; {}name one of a device like it (`epocast list calibrations`), or use "
                           "cost_model: roofline",
                           of_device, other_precision(context, folder)));
  const ConfigNode name =
      ConfigNode::load_text(found.empty() ? stand_ins.front() : found.front(), options.where().file);
  ComputeCalibration calibration = read_calibration(name, context);
  const bool rate_known = device.matrix_rate(context.precision).value > 0;
  if (!found.empty() && (!rate_known || has_rates_of(device, context.precision, calibration)))
    return {name, std::move(calibration)};
  return {options.at("calibration"), at_rates_of(device, context.precision, std::move(calibration), name.as_string())};
}

std::unique_ptr<CostModel> make_fitted(const ConfigNode& options, const CostModelContext& context) {
  auto [name, calibration] = choose_calibration(options, context);
  require_precision(name, calibration.rates.precision, context);
  const Device& device = measured_device(calibration.device, context);
  return std::make_unique<NominallyScaled>(
      std::make_unique<Fitted>(std::move(calibration), name.as_string(), context.optimizer, *context.model, device,
                               update_kernels(context),
                               FittedSettings{.product_rate = options.get("product_rate", 1.0, {0.01, 10}),
                                              .memory_rate = options.get("memory_rate", 1.0, {0.01, 10}),
                                              .framework = read_framework_kernels(options)}),
      "calibration '" + name.as_string() + "'", device);
}

std::unique_ptr<CostModel> make_im2col(const ConfigNode& options, const CostModelContext& context) {
  auto [name, calibration] = choose_calibration(options, context);
  require_precision(name, Precision::fp32, context);
  Im2colOptions own;
  own.optimizer = context.optimizer;
  own.update_kernels = update_kernels(context);
  own.memory_efficiency = options.get("memory_efficiency", own.memory_efficiency, kFraction);
  if (options.has("core_bandwidth")) own.core_bandwidth = options.at("core_bandwidth").as_bytes_per_second(Range{1});
  if (calibration.rates.precision != Precision::fp32)
    throw name.error("is of products in narrower formats; im2col needs fp32");
  const Device& device = measured_device(calibration.device, context);
  return std::make_unique<NominallyScaled>(
      std::make_unique<Im2col>(std::move(calibration), name, own, *context.model, device),
      "calibration '" + name.as_string() + "'", device);
}

}  // namespace

CostModelRegistry make_cost_model_registry(const CostModelContext& context) {
  CostModelRegistry registry("cost model");
  registry.add(roofline_info(), [context](const ConfigNode& options) { return make_roofline(options, context); });
  registry.add(measured_info(), [context](const ConfigNode& options) { return make_measured(options, context); });
  registry.add(fitted_info(), [context](const ConfigNode& options) { return make_fitted(options, context); });
  registry.add(im2col_info(), [context](const ConfigNode& options) { return make_im2col(options, context); });
  return registry;
}

LaunchSettings read_launches(const ConfigNode& compute) {
  LaunchSettings out;
  if (!compute.is_map() || compute.get("cost_model", "roofline") != "fitted") return out;
  out.count = true;
  if (compute.has("step_time"))
    out.below = static_cast<std::int64_t>(read_step_times(compute.at("step_time")).begin()->first);
  if (compute.has("launch")) {
    if (out.below) throw compute.at("launch").error("step_time contains what the host needs; leave one of both out");
    out.each = compute.at("launch").as_seconds({0, 1});
  }
  return out;
}

std::unique_ptr<CostModel> make_cost_model(const ConfigNode& compute, const CostModelContext& context) {
  if (!compute.is_map()) throw compute.error("must be a map such as {cost_model: roofline, efficiency: 0.5}");
  const bool named = compute.has("cost_model");
  auto inner = make_cost_model_registry(context).make(compute.get("cost_model", "roofline"), compute,
                                                      named ? compute.at("cost_model") : compute);
  if (compute.has("step_time"))
    inner = std::make_unique<StepTimeAnchored>(std::move(inner), *context.model, *context.device,
                                               read_step_times(compute.at("step_time")));
  const TimeCorrection correction = read_correction(compute);
  if (correction == TimeCorrection{}) return inner;
  return std::make_unique<Corrected>(std::move(inner), *context.model, correction, update_kernels(context));
}

}  // namespace epocast
