#include "experiments/cli/calibrate_measure.hpp"

#include <iostream>
#include <stdexcept>
#include <utility>

#include "experiments/calibrate/kernel_list.hpp"
#include "experiments/calibrate/microbench.hpp"
#include "experiments/calibrate/pytorch.hpp"
#include "experiments/calibrate/step_check.hpp"
#include "experiments/cli/commands.hpp"
#include "sim/data_directory.hpp"
#include "sim/file_output.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

/// "alexnet,{name: resnet50, image: 64}": commas inside braces do not separate.
std::vector<std::string> split_models(const std::vector<std::string>& lists) {
  std::vector<std::string> out;
  for (const std::string& list : lists) {
    out.emplace_back();
    int depth = 0;
    for (const char c : list) {
      if (c == '{') ++depth;
      if (c == '}') --depth;
      if (c == ',' && depth == 0) {
        out.emplace_back();
      } else {
        out.back() += c;
      }
    }
  }
  return out;
}

std::vector<Model> load_models(const std::vector<std::string>& specs) {
  std::vector<Model> models;
  for (const std::string& spec : specs) {
    if (spec.find_first_not_of(" ") == std::string::npos) throw ConfigError("--model: a name is empty");
    models.push_back(load_model_named(ConfigNode::load_text(spec, "--model"), data_directory()));
  }
  return models;
}

Seconds parse_budget(const std::string& text) {
  try {
    const Seconds budget = parse_seconds(text);
    if (budget >= Seconds(1) && budget <= Seconds(1e6)) return budget;
  } catch (const std::invalid_argument& problem) {
    throw ConfigError(std::string("--budget: ") + problem.what());
  }
  throw ConfigError("--budget: must be from 1 s to 10 d");
}

/// What to measure, from the command line; the check's own choice for what is not given there.
MeasureOptions measure_options(const MeasureArguments& arguments) {
  MeasureOptions options;
  if (arguments.check) options = default_check();
  if (!arguments.models.empty()) options.models = split_models(arguments.models);
  if (!arguments.batches.empty()) options.batches = arguments.batches;
  if (arguments.threads > 0) options.threads = arguments.threads;
  options.optimizer = parse_optimizer(arguments.optimizer);
  options.precision = parse_precision(arguments.precision);
  if (options.precision == Precision::fp8)
    throw ConfigError("--precision: kernels of fp8 are not timed here; give measurements of them with --from");
  if (!arguments.budget.empty()) options.budget = parse_budget(arguments.budget);
  if (options.models.empty() || options.batches.empty())
    throw ConfigError(
        "give measurements with --from, or --model and --batch to time kernels here, as in --model resnet50 "
        "--batch 8,32");
  return options;
}

}  // namespace

void add_measure_options(CLI::App& command, MeasureArguments& arguments) {
  command
      .add_option("--batch", arguments.batches,
                  "batch sizes to time, as in 8,32; or that of a PipeDream profile, if it does not show it")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1000000000));
  command
      .add_option("--model", arguments.models,
                  "models to time: names, files, or '{name: resnet50, image: 64}', with commas between; the model of "
                  "layer timings; or which model of a PipeDream table")
      ->allow_extra_args(false);
  command
      .add_option("--threads", arguments.threads, "to time with; default: as many as CPUs may be used, 1 with --check")
      ->check(CLI::Range(1, 4096));
  command.add_option("--optimizer", arguments.optimizer, "whose updates to time")
      ->capture_default_str()
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}));
  command
      .add_option("--kernels", arguments.kernels,
                  "of which library to time here: pytorch, whose steps are to be forecast, or onednn; default: pytorch "
                  "where python3 finds it")
      ->check(CLI::IsMember({"pytorch", "onednn"}));
  command.add_option("--budget", arguments.budget, "how long timing may take, as in 10min; default: 10 min");
  command.add_flag("--check", arguments.check,
                   "execute training steps here and compare them with the sum of their kernels; exits 1 beyond 10 %");
  command.add_option("--layer-timings", arguments.layer_timings,
                     "write the times of one model here, as cost model `measured` reads them");
  command.add_option("--kernel-list", arguments.kernel_list,
                     "time nothing, and write the distinct kernels of the models here, for "
                     "workloads/microbench/pytorch_kernels.py");
}

void check_not_measuring(const MeasureArguments& arguments) {
  const std::pair<const char*, bool> given[] = {{"--check", arguments.check},
                                                {"--kernels", !arguments.kernels.empty()},
                                                {"--budget", !arguments.budget.empty()},
                                                {"--threads", arguments.threads > 0},
                                                {"--kernel-list", !arguments.kernel_list.empty()},
                                                {"--layer-timings", !arguments.layer_timings.empty()}};
  for (const auto& [option, is_given] : given)
    if (is_given) throw ConfigError(std::string(option) + " is for measuring here: calibrate compute without --from");
  if (arguments.models.size() > 1 || arguments.batches.size() > 1)
    throw ConfigError("--model and --batch take one value with --from");
}

int list_kernels(const MeasureArguments& arguments) {
  const MeasureOptions options = measure_options(arguments);
  const std::vector<Model> models = load_models(options.models);
  write_file(arguments.kernel_list, [&](std::ostream& out) {
    write_kernel_list(out, models, options.batches, options.optimizer, options.precision);
  });
  return kDone;
}

int check_steps_here(const MeasureArguments& arguments) {
  if (arguments.kernels == "pytorch") throw ConfigError("--check executes steps with oneDNN; leave --kernels out");
  MeasureOptions options = measure_options(arguments);
  options.steps = true;
  options.rates = false;
  const std::vector<Model> models = load_models(options.models);
  const MeasuredKernels measured = measure_steps(options);
  return print_check(std::cout, measured, check_steps(measured, models, options)) ? kDone : kMissed;
}

KernelMeasurements measure_kernels(const MeasureArguments& arguments) {
  const MeasureOptions options = measure_options(arguments);
  const std::vector<Model> models = load_models(options.models);
  if (!arguments.layer_timings.empty() && models.size() > 1)
    throw ConfigError("--layer-timings: a file holds the layers of one model, not of several; give one --model");
  if (!arguments.layer_timings.empty() && arguments.kernels == "pytorch")
    throw ConfigError(
        "--layer-timings: PyTorch's kernels are timed without the layers they belong to; use --kernels onednn");
  if (arguments.layer_timings.empty() &&
      (arguments.kernels.empty() ? pytorch_is_installed() : arguments.kernels == "pytorch"))
    return measure_pytorch_kernels(models, options);
  if (options.precision != Precision::fp32)
    throw ConfigError("--precision: oneDNN's kernels are timed in fp32; others need PyTorch on a GPU");
  const MeasuredKernels measured = measure_steps(options);
  if (!arguments.layer_timings.empty())
    write_file(arguments.layer_timings, to_layer_timings(measured, models.front(), options.models.front()));
  return to_kernel_measurements(measured, models, options);
}

}  // namespace epocast
