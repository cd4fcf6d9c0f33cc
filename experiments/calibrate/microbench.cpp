#include "experiments/calibrate/microbench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "experiments/calibrate/child_output.hpp"
#include "experiments/calibrate/kernel_list.hpp"

namespace epocast {
namespace {

namespace fs = std::filesystem;

fs::path program_file() {
  if (const char* named = std::getenv("EPOCAST_MICROBENCH")) return named;
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path() / "epocast_microbench";
}

template <class Quantity>
std::optional<Quantity> header_quantity(const CsvTable& table, const char* key, Quantity (*parse)(std::string_view)) {
  const auto found = table.header().find(key);
  if (found == table.header().end()) return std::nullopt;
  return parse(found->second.text);
}

MeasuredKernels read_measurements(const std::string& text) {
  std::istringstream in(text);
  const CsvTable table = CsvTable::read(in, "epocast_microbench");
  const auto header = [&](const char* key) {
    return table.header().contains(key) ? table.header().at(key).text : std::string();
  };
  MeasuredKernels out;
  out.device = header("device");
  out.library = header("library");
  out.date = header("date");
  out.threads = header("threads");
  out.peak_rate = header_quantity(table, "peak_rate", &parse_flop_per_second);
  out.memory_bandwidth = header_quantity(table, "memory_bandwidth", &parse_bytes_per_second);
  if (table.header().contains("units")) out.units = std::atof(header("units").c_str());
  for (const CsvRow& row : table.rows())
    out.passes.push_back({.model = row.text("model"),
                          .batch = row.whole("batch", {1, 1e9}),
                          .layer = row.text("layer"),
                          .pass = row.text("pass"),
                          .kernel = static_cast<int>(row.whole("kernel", {-1, 1e9})),
                          .repetitions = static_cast<int>(row.whole("repetitions", {1, 1e9})),
                          .time = Seconds(row.seconds("time_s")),
                          .fastest = Seconds(row.seconds("fastest_s")),
                          .spread = row.number("spread", {0, 1e9})});
  return out;
}

int index_of(const Model& model, const std::string& name) {
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (model.layers[i].name == name) return static_cast<int>(i);
  throw std::logic_error("epocast_microbench timed a layer that is not in the model");
}

}  // namespace

MeasuredKernels measure_steps(const MeasureOptions& options) {
  const fs::path program = program_file();
  if (::access(program.c_str(), X_OK) != 0)
    throw ConfigError("to measure here, epocast needs the program " + program.string() +
                      ", which is built where oneDNN is installed: run ./epocast calibrate compute from the source "
                      "tree, or apt-get install libdnnl-dev and build again; or give measurements with --from");
  std::vector<std::string> command{program.string()};
  for (const std::string& model : options.models) command.insert(command.end(), {"--model", model});
  for (const std::int64_t batch : options.batches) command.insert(command.end(), {"--batch", std::to_string(batch)});
  if (options.threads > 0) command.insert(command.end(), {"--threads", std::to_string(options.threads)});
  command.insert(command.end(),
                 {"--optimizer", to_string(options.optimizer), "--least", std::to_string(options.least), "--most",
                  std::to_string(options.most), "--budget", fmt::format("{}", options.budget.value)});
  if (options.steps) command.emplace_back("--steps");
  if (!options.rates) command.emplace_back("--no-rates");
  return read_measurements(output_of("epocast_microbench", command));
}

KernelMeasurements to_kernel_measurements(const MeasuredKernels& measured, const std::vector<Model>& models,
                                          const MeasureOptions& options) {
  KernelMeasurements out;
  out.device = measured.device;
  out.library = measured.library;
  out.date = measured.date;
  out.threads = measured.threads;
  out.peak_rate = measured.peak_rate;
  out.memory_bandwidth = measured.memory_bandwidth;
  out.units = measured.units;
  out.source = "epocast calibrate compute, kernels of";
  for (const Model& model : models) out.source += " " + model.name;
  out.note = fmt::format(
      "medians; caches as in a training step; {} repetitions, more until the median is known to 1 % or the time is up",
      options.least);
  std::map<std::string, const Model*> by_spec;
  for (std::size_t i = 0; i < models.size(); ++i) by_spec[options.models[i]] = &models[i];
  std::set<std::tuple<std::string, std::int64_t, int>> seen;
  for (const MeasuredPass& p : measured.passes) {
    if (p.layer.empty() || !seen.emplace(p.model, p.batch, p.kernel).second) continue;
    const Model& model = *by_spec.at(p.model);
    const auto shape = step_kernel(model, index_of(model, p.layer), p.batch, p.pass, options.optimizer);
    if (shape) out.timings.push_back({*shape, p.time, 0, p.repetitions, p.spread});
  }
  return out;
}

std::string to_layer_timings(const MeasuredKernels& measured, const Model& model, const std::string& spec,
                             bool fastest) {
  struct Row {
    Seconds forward, data, weights, update;
    int repetitions = 1 << 30;
    double spread = 0;
  };
  std::map<std::pair<std::int64_t, int>, Row> rows;
  int repetitions = 1 << 30;
  double spread = 0;
  for (const MeasuredPass& p : measured.passes) {
    if (p.model != spec || p.layer.empty()) continue;
    Row& row = rows[{p.batch, index_of(model, p.layer)}];
    const Seconds time = fastest ? p.fastest : p.time;
    if (p.pass == "forward") row.forward += time;
    if (p.pass == "backward_data" || p.pass == "gradient_sum") row.data += time;
    if (p.pass == "backward_weights") row.weights += time;
    if (p.pass == "update") row.update += time;
    if (p.pass == "backward") {
      row.data += 0.5 * time;
      row.weights += 0.5 * time;
    }
    repetitions = std::min(repetitions, p.repetitions);
    spread = std::max(spread, p.spread);
  }
  std::string out = fmt::format(
      "# device: {}\n# source: epocast calibrate compute, kernels of {}\n# precision: fp32\n# threads: {}\n"
      "# library: {}\n# date: {}\n# repetitions: {} or more\n# spread: at most {:.3g} (interquartile range over "
      "median)\n"
      "layer,kind,batch,forward_s,backward_data_s,backward_weights_s,update_s\n",
      measured.device, model.name, measured.threads, measured.library, measured.date, repetitions, spread);
  for (const auto& [key, row] : rows) {
    const Layer& layer = model.layers[static_cast<std::size_t>(key.second)];
    out += fmt::format("{},{},{},{:.7g},{:.7g},{:.7g},{:.7g}\n", layer.name, to_string(layer.kind), key.first,
                       row.forward.value, row.data.value, row.weights.value, row.update.value);
  }
  return out;
}

}  // namespace epocast
