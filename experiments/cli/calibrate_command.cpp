#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "costmodels/borrowed_fits.hpp"
#include "costmodels/compute_calibration.hpp"
#include "experiments/calibrate/import.hpp"
#include "experiments/calibrate/import_network.hpp"
#include "experiments/calibrate/report.hpp"
#include "experiments/cli/calibrate_measure.hpp"
#include "experiments/cli/calibrate_steps.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/cli/word_option.hpp"
#include "experiments/store/record_writer.hpp"
#include "experiments/svg.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"

namespace epocast {
namespace {

struct CalibrateArguments {
  std::string kind;
  std::vector<std::string> files;
  ImportOptions import;
  MeasureArguments measure;
  std::string peak_rate, memory_bandwidth, reduction_rate;
  int units = 0;
  std::string interconnect;
  std::string confidence;
  std::vector<std::string> also_from;
  std::string output, plot, measurements, store;
  CalibrateStepsArguments steps;
};

template <class Quantity>
Quantity parse_positive(const char* option, const std::string& text, Quantity (*parse)(std::string_view)) {
  return parse_option(option, text, [&](const std::string& t) {
    const Quantity value = parse(t);
    if (!(value.value > 0)) throw std::invalid_argument("must be positive");
    return value;
  });
}

void note_left_out(const std::vector<std::string>& left_out) {
  for (const std::string& what : left_out) std::cerr << "left out: " << what << '\n';
}

void write_files(const CalibrateArguments& arguments, const std::string& yaml, const std::string& svg) {
  if (!arguments.plot.empty()) write_file(arguments.plot, svg);
  if (!arguments.output.empty()) write_file(arguments.output, yaml);
}

KernelMeasurements read_kernels(const CalibrateArguments& arguments) {
  KernelMeasurements all;
  for (const std::string& file : arguments.files) {
    KernelMeasurements part = import_kernels(file, arguments.import);
    note_left_out(part.left_out);
    if (!all.device.empty() && part.device != all.device)
      throw ConfigError(
          Location{file, 0, 0}, "device",
          "is '" + part.device + "', but the other files are of '" + all.device + "'; a calibration is of one device");
    if (!all.device.empty() && part.precision != all.precision)
      throw ConfigError(Location{file, 0, 0}, "precision",
                        fmt::format("is {}, but the other files are of {}; a calibration is of one precision",
                                    to_string(part.precision), to_string(all.precision)));
    all.device = part.device;
    all.precision = part.precision;
    if (all.source.find(part.source) == std::string::npos) all.source += (all.source.empty() ? "" : "; ") + part.source;
    if (all.library.empty()) all.library = part.library;
    if (all.date < part.date) all.date = part.date;
    if (!all.peak_rate) all.peak_rate = part.peak_rate;
    if (!all.memory_bandwidth) all.memory_bandwidth = part.memory_bandwidth;
    if (!all.units) all.units = part.units;
    all.timings.insert(all.timings.end(), part.timings.begin(), part.timings.end());
  }
  return all;
}

void store_fits(const CalibrateArguments& arguments, const std::string& name,
                const std::vector<nlohmann::ordered_json>& rows) {
  if (!arguments.store.empty()) store_records(arguments.store, "calibrate", name, program_version(), rows);
}

nlohmann::ordered_json fit_row(const std::string& kind, const std::string& device, const std::string& fit, int points,
                               double error, double ninetieth) {
  return {{"kind", kind},     {"device", device}, {"fit", fit},
          {"points", points}, {"error", error},   {"error_90", ninetieth}};
}

/// Adds the device's rates from the command line.
KernelMeasurements complete(const CalibrateArguments& arguments, KernelMeasurements all) {
  if (!arguments.peak_rate.empty())
    all.peak_rate = parse_positive("--peak-rate", arguments.peak_rate, &parse_flop_per_second);
  if (!arguments.memory_bandwidth.empty())
    all.memory_bandwidth = parse_positive("--memory-bandwidth", arguments.memory_bandwidth, &parse_bytes_per_second);
  if (arguments.units > 0) all.units = arguments.units;
  if (!all.peak_rate || !all.memory_bandwidth || !all.units)
    throw ConfigError(
        "the fit needs the device's rates, which the files do not tell; give --peak-rate '15.7 TFLOP/s' "
        "--memory-bandwidth '900 GB/s' --units 80");
  return all;
}

/// A calibration by name or path.
ComputeCalibration load_named(const std::string& name) {
  const auto shipped = data_directory() / "costmodels" / "calibrations" / (name + ".yaml");
  std::error_code ignored;  // of a name too long for a file
  return load_compute_calibration(std::filesystem::is_regular_file(shipped, ignored) ? shipped
                                                                                     : std::filesystem::path(name));
}

/// A calibration to borrow from: NAME, or NAME:OPERATOR for its fits of one operator.
struct Lender {
  std::string name;
  ComputeCalibration calibration;

  explicit Lender(const std::string& text) : name(text) {
    const std::size_t colon = text.rfind(':');
    const std::string family = colon == std::string::npos ? "" : text.substr(colon + 1);
    const std::vector<std::string> families = kernel_families();
    const bool is_limited = std::ranges::find(families, family) != families.end();
    if (is_limited) name.resize(colon);
    calibration = load_named(name);
    if (is_limited) std::erase_if(calibration.fits, [&](const KernelFit& fit) { return fit.family != family; });
  }
};

int calibrate_compute(const CalibrateArguments& arguments) {
  if (!arguments.measure.kernel_list.empty()) return list_kernels(arguments.measure);
  if (arguments.measure.check) return check_steps_here(arguments.measure);
  const KernelMeasurements m =
      complete(arguments, arguments.files.empty() ? measure_kernels(arguments.measure) : read_kernels(arguments));
  const DeviceRates rates{*m.peak_rate, *m.memory_bandwidth, *m.units, m.precision};
  ProgressLine line;
  line.show(fmt::format("fitting {} kernel times", m.timings.size()));
  const std::vector<TestedFit> fits = fit_all(m.timings, rates);
  line.clear();
  std::cout << fmt::format("{}: {} kernel times\n\n", m.device, m.timings.size());
  print_report(std::cout, fits);
  std::cout << '\n' << what_is_forecast(m.library);

  std::vector<nlohmann::ordered_json> rows;
  for (const TestedFit& f : fits)
    rows.push_back(fit_row("compute", m.device, f.fit.family + " " + to_string(f.fit.pass), f.fit.quality.points,
                           f.fit.quality.final, f.fit.quality.ninetieth));
  store_fits(arguments, m.device, rows);

  ComputeCalibration calibration;
  calibration.device = m.device;
  calibration.source = m.source;
  calibration.library = m.library;
  calibration.date = m.date;
  calibration.confidence = arguments.confidence;
  calibration.rates = rates;
  for (const TestedFit& f : fits) calibration.fits.push_back(f.fit);
  for (const std::string& text : arguments.also_from) {
    const Lender lender(text);
    const std::string& name = lender.name;
    const ComputeCalibration& other = lender.calibration;
    const std::string added = borrow_missing(calibration, other, name);
    if (added.empty()) continue;
    const bool as_it_is = are_of_same_device(calibration, other);
    std::cout << fmt::format("\nnot measured, from '{}'{}: {}\n", name, as_it_is ? "" : " in proportion", added);
    calibration.confidence += fmt::format("{}{} {}: {}", calibration.confidence.empty() ? "" : "; ",
                                          as_it_is ? "from" : "in proportion to", name, added);
  }
  if (!arguments.measurements.empty()) {
    std::ostringstream csv;
    write_kernel_measurements(csv, m, "");
    write_file(arguments.measurements, csv.str());
  }
  write_files(arguments, to_yaml(calibration), arguments.plot.empty() ? "" : plot_fits(m.device, fits));
  return kDone;
}

int calibrate_network(const CalibrateArguments& arguments) {
  NetworkMeasurements all;
  for (const std::string& file : arguments.files) {
    NetworkMeasurements part = import_collectives(file, arguments.import);
    note_left_out(part.left_out);
    if (!all.device.empty() && (part.device != all.device || part.interconnect != all.interconnect))
      throw ConfigError(Location{file, 0, 0}, "device",
                        "device or interconnect differ from those of the other files; a calibration is of one machine");
    std::vector<CollectiveTiming> timings = std::move(all.timings);
    timings.insert(timings.end(), part.timings.begin(), part.timings.end());
    all = std::move(part);
    all.timings = std::move(timings);
  }
  if (!arguments.interconnect.empty()) all.interconnect = arguments.interconnect;
  const double gamma =
      arguments.reduction_rate.empty()
          ? 0
          : 1 / parse_positive("--reduction-rate", arguments.reduction_rate, &parse_bytes_per_second).value;
  const std::vector<NetworkFit> fits = fit_networks(all.timings, gamma);
  std::cout << fmt::format("{}, {}: {} collectives\n\n", all.device, all.interconnect, all.timings.size());
  print_report(std::cout, fits);
  std::vector<nlohmann::ordered_json> rows;
  for (const NetworkFit& f : fits)
    rows.push_back(fit_row("network", all.device, f.library + " " + to_string(f.op), f.quality.points, f.quality.error,
                           f.quality.ninetieth));
  store_fits(arguments, all.device, rows);
  const NetworkCalibration calibration{all.device, all.interconnect, all.source, all.date, arguments.confidence, fits};
  write_files(arguments, to_yaml(calibration), arguments.plot.empty() ? "" : plot_fits(all.device, fits, all.timings));
  return kDone;
}

int calibrate(CalibrateArguments arguments, const Registries& registries) {
  const std::vector<std::string> kinds{"compute", "network", "steps"};
  if (std::ranges::find(kinds, arguments.kind) == kinds.end())
    throw ConfigError("calibrate: unknown kind '" + arguments.kind + "'" + name_hint(arguments.kind, kinds));
  if (arguments.kind != "compute" && arguments.files.empty()) throw ConfigError("--from is required");
  check_svg_name("--plot", arguments.plot);
  if (arguments.kind != "compute" || !arguments.files.empty()) check_not_measuring(arguments.measure);
  if (arguments.kind == "steps") {
    CalibrateStepsArguments steps = arguments.steps;
    steps.files = arguments.files;
    steps.output = arguments.output;
    steps.plot = arguments.plot;
    steps.store = arguments.store;
    return calibrate_steps(steps, registries);
  }
  // A name of a shipped model, or a path; a PipeDream table has models of its own.
  const std::string model = arguments.measure.models.empty() ? "" : arguments.measure.models.front();
  arguments.import.model = model;
  if (!arguments.measure.batches.empty()) arguments.import.batch = arguments.measure.batches.front();
  if (!model.empty() && model.find('/') == std::string::npos && !model.ends_with(".yaml")) {
    const auto shipped = data_directory() / "workloads" / "models" / (model + ".yaml");
    std::error_code ignored;  // of a name too long for a file
    if (std::filesystem::is_regular_file(shipped, ignored)) arguments.import.model = shipped;
  }
  arguments.measure.precision = arguments.import.precision;
  return arguments.kind == "compute" ? calibrate_compute(arguments) : calibrate_network(arguments);
}

}  // namespace

void add_calibrate_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Fit compute or network models, or constants of whole steps, to measurements, test them on what they have not "
      "seen, and write a file that\n"
      "studies name. Formats: docs/calibration.md.\n"
      "Example: epocast calibrate compute --model resnet50 --batch 8,32 -o here.yaml\n"
      "         epocast calibrate compute --from costmodels/measurements/v100.csv -o my_v100.yaml --plot my_v100.svg");
  command->add_option("kind", arguments->kind, "compute, network or steps")->required();
  command
      ->add_option("--from", arguments->files,
                   "measurements: epocast's CSV, DeepBench tables, PipeDream profiles, PyTorch profiler traces; may be "
                   "repeated; without it, `compute` times kernels on this machine")
      ->allow_extra_args(false);
  command->add_option("--device", arguments->import.device,
                      "which device, where a table has several; or its name, where the file lacks it");
  command
      ->add_option("--precision", arguments->import.precision,
                   "which rows of a table to use, where it has several; or to time kernels in")
      ->capture_default_str()
      ->check(CLI::IsMember(precision_names()));
  add_measure_options(*command, arguments->measure);
  command->add_option("--peak-rate", arguments->peak_rate,
                      "peak of the device in that precision, as in '15.7 TFLOP/s'");
  command->add_option("--memory-bandwidth", arguments->memory_bandwidth, "of the device, as in '900 GB/s'");
  command->add_option("--units", arguments->units, "cores or multiprocessors of the device")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--interconnect", arguments->interconnect, "what the network is, for the file");
  command->add_option("--reduction-rate", arguments->reduction_rate,
                      "bytes that a device reduces per second, as in '100 GB/s'; an all-reduce alone cannot tell");
  command->add_option("--confidence", arguments->confidence, "how sure the measurements are, in words, for the file");
  command
      ->add_option(
          "--also-from", arguments->also_from,
          "a calibration (a name or path) to take in proportion what was not measured here, all or one operator "
          "as in h100_bf16:convolution; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--study", arguments->steps.study, "the study whose steps were measured");
  command
      ->add_option("--fit", arguments->steps.constants,
                   "which study keys to fit to steps, with commas between; default: compute.scale, "
                   "compute.step_overhead and, with several workers, network.efficiency, and stack.scale if the study "
                   "names a stack")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--jobs", arguments->steps.jobs, "steps simulated at a time; default: one per processor")
      ->check(CLI::Range(1, 4096));
  command->add_option("-o,--output", arguments->output, "write the calibration (YAML) here");
  command->add_option("--measurements", arguments->measurements, "write the kernel times here in epocast's own format");
  command->add_option("--store", arguments->store,
                      "also keep the fits and their errors in this store, see `results --records`");
  command->add_option("--plot", arguments->plot, "draw measured against predicted times (SVG) here");
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return calibrate(*arguments, context.registries); };
  });
}

}  // namespace epocast
