#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "costmodels/calibration_choice.hpp"
#include "costmodels/register.hpp"
#include "experiments/calibrate/calibration_list.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/reproduce/target.hpp"
#include "experiments/text_table.hpp"
#include "platforms/platform_loader.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"
#include "sim/input_file.hpp"
#include "sim/quantity.hpp"
#include "strategies/composition.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

/// What follows `list KIND`: nothing, or the name of one thing of the kind.
using Name = std::string;

[[noreturn]] void fail_to_find(const std::string& what, const Name& name, const std::vector<std::string>& names) {
  throw ConfigError("no " + what + " '" + name + "'" + name_hint(name, names));
}

void print_entries(const std::string& what, std::vector<EntryInfo> entries, const Name& name) {
  std::vector<std::string> names;
  for (const EntryInfo& entry : entries) names.push_back(entry.name);
  if (!name.empty()) std::erase_if(entries, [&](const EntryInfo& entry) { return entry.name != name; });
  if (entries.empty()) fail_to_find(what, name, names);
  for (const EntryInfo& entry : entries) {
    std::cout << entry.name << ": " << entry.description << '\n';
    Cells rows{{"parameter", "unit", "range", "default", "meaning"}};
    for (const ParameterInfo& p : entry.parameters)
      rows.push_back({p.name, p.unit, p.range, p.default_value, p.description});
    if (rows.size() > 1) std::cout << align_columns(rows);
    std::cout << '\n';
  }
}

/// A table, or the one row that has this name in front.
void print_rows(const std::string& what, Cells rows, const Name& name) {
  std::vector<std::string> names;
  for (std::size_t r = 1; r < rows.size(); ++r) names.push_back(rows[r].front());
  if (!name.empty())
    rows.erase(std::remove_if(rows.begin() + 1, rows.end(), [&](const auto& row) { return row.front() != name; }),
               rows.end());
  if (rows.size() == 1) fail_to_find(what, name, names);
  std::cout << align_columns(rows);
}

void print_layers(const Model& model) {
  Cells rows{{"layer", "kind", "output", "parameters", "GFLOP/sample"}};
  for (const Layer& layer : model.layers)
    rows.push_back({layer.name, to_string(layer.kind), to_string(layer.output), std::to_string(layer.parameter_count()),
                    fmt::format("{:.4f}", layer.forward_flop / 1e9)});
  std::cout << '\n' << align_columns(rows);
  if (!model.source.empty()) std::cout << "\nsource: " << model.source << '\n';
}

void print_models(const Name& name) {
  const std::filesystem::path folder = data_directory() / "workloads" / "models";
  Cells rows{{"model", "parameters", "GFLOP/sample", "description"}};
  for (const ModelSummary& m : list_models(folder))
    rows.push_back({m.name, std::to_string(m.parameters), fmt::format("{:.3f}", m.forward_flop / 1e9), m.description});
  print_rows("model", std::move(rows), name);
  if (!name.empty()) print_layers(load_model(folder / (name + ".yaml")));
}

/// Kinds of devices, how many there are of each, and where the figures come from.
void print_cluster(const Cluster& cluster) {
  Cells rows{{"devices", "model", "cores", "peak rate", "memory", "memory bandwidth"}};
  for (std::size_t first = 0, next = 0; first < cluster.devices.size(); first = next) {
    const Device& device = cluster.devices[first];
    while (next < cluster.devices.size() && same_kind(cluster.devices[next], device)) ++next;
    rows.push_back({std::to_string(next - first), device.model, std::to_string(device.cores),
                    to_string(device.peak_rate), to_string(device.memory), to_string(device.memory_bandwidth)});
  }
  std::cout << '\n' << align_columns(rows);
  if (!cluster.sources.empty()) std::cout << "\nsources\n";
  Cells sources;
  for (const auto& [property, source] : cluster.sources) sources.push_back({property, source});
  std::cout << align_columns(sources);
}

void print_platforms(const Name& name) {
  const std::filesystem::path folder = data_directory() / "platforms";
  Cells rows{{"platform", "devices", "device", "description"}};
  for (const PlatformInfo& p : list_platforms(folder))
    rows.push_back({p.name, std::to_string(p.devices), p.device_model,
                    p.problem.empty() ? p.description : "cannot be loaded: " + p.problem});
  for (const PlatformInfo& p : list_clusters(folder))
    rows.push_back({p.name, std::to_string(p.devices), p.device_model, p.description});
  print_rows("platform", std::move(rows), name);
  if (!name.empty())
    print_cluster(load_platform_named(ConfigNode::load_text(name, "list platforms"), data_directory()));
}

/// The precisions in which `calibration: auto` knows the device's kernels.
std::string known_kernels(const Device& device) {
  const std::filesystem::path folder = data_directory() / "costmodels" / "calibrations";
  std::vector<std::string> own, like;
  for (const Precision precision : kPrecisions) {
    if (device.matrix_rate(precision).value <= 0) continue;
    if (!calibrations_of(device, precision, folder).empty())
      own.emplace_back(to_string(precision));
    else if (!stand_ins_for(device, precision, folder).empty())
      like.emplace_back(to_string(precision));
  }
  std::string out = fmt::format("{}", fmt::join(own, ", "));
  if (!like.empty()) {
    const Name& of = device.kernels_like.text();
    out += fmt::format("{}{} {}", own.empty() ? "" : "; ", fmt::join(like, ", "),
                       of.empty() ? "from its fp16 or bf16" : "as " + of);
  }
  return out.empty() ? "none" : out;
}

void print_devices(const Name& name) {
  Cells rows{{"device", "model", "cores", "fp32", "tf32", "fp16", "bf16", "fp8", "memory", "bandwidth", "kernels"}};
  for (const auto& [kind, device] : list_devices(data_directory() / "platforms")) {
    std::vector<std::string> row{kind, device.model, std::to_string(device.cores)};
    for (const Precision precision : kPrecisions) {
      const FlopPerSecond rate = device.matrix_rate(precision);
      row.push_back(rate.value > 0 ? to_string(rate) : "");
    }
    row.insert(row.end(), {to_string(device.memory), to_string(device.memory_bandwidth), known_kernels(device)});
    rows.push_back(std::move(row));
  }
  print_rows("device", std::move(rows), name);
  if (name.empty()) return;
  const ConfigNode device = ConfigNode::load_file(data_directory() / "platforms" / "devices.yaml").at(name);
  std::cout << "\nsource: " << device.at("source").as_string() << '\n';
}

void print_stacks(const Name& name) {
  const std::filesystem::path folder = data_directory() / "costmodels" / "stacks";
  Cells rows{{"stack", "description"}};
  for (const std::string& stack : data_file_names(folder, ".yaml"))
    rows.push_back({stack, ConfigNode::load_file(folder / (stack + ".yaml")).get("description", "")});
  print_rows("stack", std::move(rows), name);
  if (name.empty()) return;
  std::cout << "\nsource: " << ConfigNode::load_file(folder / (name + ".yaml")).get("source", "") << '\n';
}

/// What a study is about: its description, or the comment that it begins with.
std::string about(const std::string& study, const std::string& file) {
  const ConfigNode root = ConfigNode::load_text(study, file);
  if (root.has("description")) return root.at("description").as_string();
  return study.starts_with("# ") ? study.substr(2, study.find('\n') - 2) : "";
}

void print_studies(const Name& name) {
  const std::filesystem::path folder = data_directory() / "experiments" / "studies";
  Cells rows{{"study", "description"}};
  for (const std::string& study : data_file_names(folder, ".yaml")) {
    const std::filesystem::path file = folder / (study + ".yaml");
    rows.push_back({study, about(read_input_file(file), file.string())});
  }
  print_rows("study", std::move(rows), name);
  if (!name.empty()) std::cout << '\n' << read_input_file(folder / (name + ".yaml"));
}

void print_targets(const Name& name) {
  Cells rows{{"target", "description"}};
  for (const Target& target : builtin_targets()) rows.push_back({target.name(), target.description});
  print_rows("target", std::move(rows), name);
}

void print_algorithms(const Name& name) {
  const std::vector<std::string> names = collective_algorithm_names();
  if (!name.empty() && std::ranges::find(names, name) == names.end()) fail_to_find("algorithm", name, names);
  for (const std::string& algorithm : names) {
    if (!name.empty() && algorithm != name) continue;
    std::string can;
    for (const std::string& op : collective_op_names())
      if (supports(parse_collective_algorithm(algorithm), parse_collective_op(op)))
        can += (can.empty() ? "" : ", ") + op;
    std::cout << algorithm << ": " << can << '\n';
  }
  if (name.empty())
    std::cout << "auto: the fastest predicted of those that the group can run (default)\n"
                 "nccl: what NCCL would take\n"
                 "mpi: what MPICH would take\n";
}

int list(const std::string& kind, const Name& name, const Registries& registries) {
  const std::vector<std::pair<std::string, std::function<void()>>> kinds{
      {"strategies", [&] { print_entries("strategy", registries.strategies.infos(), name); }},
      {"schedules", [&] { print_entries("schedule", Composition::schedule_infos(), name); }},
      {"bodies",
       [&] {
         std::vector<EntryInfo> bodies{{"whole", "every device has all of its stage's layers", {}}};
         for (const EntryInfo& body : builtin_bodies().infos()) bodies.push_back(body);
         print_entries("body", std::move(bodies), name);
       }},
      {"synchronisations", [&] { print_entries("synchronisation", builtin_synchronisations().infos(), name); }},
      {"models", [&] { print_models(name); }},
      {"platforms", [&] { print_platforms(name); }},
      {"devices", [&] { print_devices(name); }},
      {"cost-models", [&] { print_entries("cost model", make_cost_model_registry({}).infos(), name); }},
      {"calibrations", [&] { print_calibrations(std::cout, data_directory() / "costmodels" / "calibrations", name); }},
      {"algorithms", [&] { print_algorithms(name); }},
      {"stacks", [&] { print_stacks(name); }},
      {"studies", [&] { print_studies(name); }},
      {"targets", [&] { print_targets(name); }}};
  std::vector<std::string> names;
  for (const auto& [one, print] : kinds) {
    if (one == kind) {
      print();
      return kDone;
    }
    names.push_back(one);
  }
  throw ConfigError("cannot list '" + kind + "'" + name_hint(kind, names));
}

}  // namespace

void add_list_command(CLI::App& app, CommandContext& context) {
  auto kind = std::make_shared<std::string>(), name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("list",
                                         "Say what there is: strategies, schedules, bodies, synchronisations, models, "
                                         "platforms, devices, cost-models, calibrations, "
                                         "algorithms, stacks, studies or targets; or all about one of them.\n"
                                         "Example: epocast list models vgg16");
  command->add_option("kind", *kind, "what to list")->required();
  command->add_option(
      "name", *name, "only this one: a network with its layers, a platform with its devices, a device with its source");
  command->callback([kind, name, &context] {
    context.action = [kind, name, &context] { return list(*kind, *name, context.registries); };
  });
}

}  // namespace epocast
