#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "costmodels/register.hpp"
#include "experiments/calibrate/calibration_list.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/reproduce/target.hpp"
#include "experiments/text_table.hpp"
#include "platforms/platform_loader.hpp"
#include "sim/data_directory.hpp"
#include "sim/quantity.hpp"
#include "strategies/composition.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

void print_entries(const std::vector<EntryInfo>& entries) {
  for (const EntryInfo& entry : entries) {
    std::cout << entry.name << ": " << entry.description << '\n';
    std::vector<std::vector<std::string>> rows{{"parameter", "unit", "range", "default", "meaning"}};
    for (const ParameterInfo& p : entry.parameters)
      rows.push_back({p.name, p.unit, p.range, p.default_value, p.description});
    if (rows.size() > 1) std::cout << align_columns(rows);
    std::cout << '\n';
  }
}

void print_models() {
  std::vector<std::vector<std::string>> rows{{"model", "parameters", "GFLOP/sample", "description"}};
  for (const ModelSummary& m : list_models(data_directory() / "workloads" / "models"))
    rows.push_back({m.name, std::to_string(m.parameters), fmt::format("{:.3f}", m.forward_flop / 1e9), m.description});
  std::cout << align_columns(rows);
}

void print_platforms() {
  std::vector<std::vector<std::string>> rows{{"platform", "devices", "device", "description"}};
  for (const PlatformInfo& p : list_platforms(data_directory() / "platforms"))
    rows.push_back({p.name, std::to_string(p.devices), p.device_model,
                    p.problem.empty() ? p.description : "cannot be loaded: " + p.problem});
  for (const PlatformInfo& p : list_clusters(data_directory() / "platforms"))
    rows.push_back({p.name, std::to_string(p.devices), p.device_model, p.description});
  std::cout << align_columns(rows);
}

void print_targets() {
  std::vector<std::vector<std::string>> rows{{"target", "description"}};
  for (const Target& target : builtin_targets()) rows.push_back({target.name(), target.description});
  std::cout << align_columns(rows);
}

void print_algorithms() {
  for (const std::string& algorithm : collective_algorithm_names()) {
    std::string can;
    for (const std::string& op : collective_op_names())
      if (supports(parse_collective_algorithm(algorithm), parse_collective_op(op)))
        can += (can.empty() ? "" : ", ") + op;
    std::cout << algorithm << ": " << can << '\n';
  }
  std::cout << "auto: the fastest predicted of those that the group can run (default)\n"
               "nccl: what NCCL would take\n"
               "mpi: what MPICH would take\n";
}

int list(const std::string& kind, const Registries& registries) {
  const std::vector<std::pair<std::string, std::function<void()>>> kinds{
      {"strategies", [&] { print_entries(registries.strategies.infos()); }},
      {"schedules", [] { print_entries(Composition::schedule_infos()); }},
      {"bodies",
       [] {
         print_entries({{"whole", "every device has all of its stage's layers", {}}});
         print_entries(builtin_bodies().infos());
       }},
      {"synchronisations", [] { print_entries(builtin_synchronisations().infos()); }},
      {"models", [] { print_models(); }},
      {"platforms", [] { print_platforms(); }},
      {"cost-models", [] { print_entries(make_cost_model_registry({}).infos()); }},
      {"calibrations", [] { print_calibrations(std::cout, data_directory() / "costmodels" / "calibrations"); }},
      {"algorithms", [] { print_algorithms(); }},
      {"targets", [] { print_targets(); }}};
  std::vector<std::string> names;
  for (const auto& [name, print] : kinds) {
    if (name == kind) {
      print();
      return kDone;
    }
    names.push_back(name);
  }
  throw ConfigError("cannot list '" + kind + "'" + name_hint(kind, names));
}

}  // namespace

void add_list_command(CLI::App& app, CommandContext& context) {
  auto kind = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("list",
                                         "Say what there is: strategies, schedules, bodies, synchronisations, models, "
                                         "platforms, cost-models, calibrations, "
                                         "algorithms or targets.\n"
                                         "Example: epocast list strategies");
  command->add_option("kind", *kind, "what to list")->required();
  command->callback(
      [kind, &context] { context.action = [kind, &context] { return list(*kind, context.registries); }; });
}

}  // namespace epocast
