#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/network_calibration.hpp"
#include "costmodels/timings_file.hpp"
#include "experiments/calibrate/calibration_list.hpp"
#include "experiments/calibrate/step_calibration.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/measured_runs/runs_file.hpp"
#include "experiments/sweep/axis_check.hpp"
#include "platforms/cluster_generator.hpp"
#include "platforms/platform_loader.hpp"
#include "platforms/probe.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "sim/network_plan.hpp"
#include "sim/words.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

/// Refuses more rings than the network has, as a run does. Only SimGrid knows the links, in a process of its own.
void check_rings(const ScenarioSetup& setup) {
  if (!setup.rings.is_count()) return;
  const auto problem = [&](int) -> std::string {
    SimEngine engine(setup.cluster, setup.network);
    try {
      for (const PhaseSettings& phase : setup.phases)
        const NetworkPlan plan(setup.compile(phase).graph, setup.cluster, engine);
    } catch (const RingCountError& found) {
      return found.what();
    }
    return "";
  };
  run_forked(1, 1, problem, [&](int, const JobOutcome& outcome) {
    if (outcome.finished && !outcome.output.empty()) throw setup.rings.error(outcome.output);
  });
}

std::string validate_study(const std::filesystem::path& file, const Registries& registries) {
  const Study study = load_users_study(file);
  check_axes(study.scenarios, registries);
  std::set<std::filesystem::path> probed;  // loading a platform into SimGrid is the slow part
  for (const Scenario& scenario : study.scenarios) {
    const ScenarioSetup setup = read_scenario(scenario, registries);
    for (const PhaseSettings& phase : setup.phases) setup.compile(phase).graph.validate(setup.cluster);
    if (probed.insert(setup.cluster.platform_file).second) probe_platform(setup.cluster);
    check_rings(setup);
  }
  return fmt::format("study '{}' with {}", study.name, counted(study.scenarios.size(), "scenario"));
}

template <class Calibration>
std::string sure(const char* kind, const Calibration& calibration) {
  return fmt::format("{} calibration of {}; errors of measurements left out: {}", kind, calibration.device,
                     how_sure(calibration));
}

/// What the file is, if it is all right. Throws ConfigError otherwise.
std::string validate(const std::filesystem::path& file, const Registries& registries) {
  const std::string extension = file.extension().string();
  if (extension == ".xml") {
    const Cluster cluster = load_platform(file);
    probe_platform(cluster);
    return fmt::format("platform '{}' with {}", cluster.name, counted(cluster.trainers(), "device"));
  }
  if (extension == ".csv") return fmt::format("timings with {}", counted(load_timings(file).rows.size(), "row"));
  const ConfigNode root = ConfigNode::load_file(file);
  if (root.is_map() && root.has("study")) return validate_study(file, registries);
  if (root.is_map() && (root.has("layers") || root.has("based_on"))) {
    const Model model = load_model(file);
    return fmt::format("model '{}' with {} and {}", model.name, counted(model.layers.size(), "layer"),
                       counted(model.parameter_count(), "parameter"));
  }
  if (root.is_map() && root.has("calibration")) {
    if (root.at("calibration").as_string() == "steps")
      return fmt::format("steps calibration of study '{}'", StepConstants(root).calibration().study);
    if (root.at("calibration").as_string() == "network") return sure("network", read_network_calibration(root));
    return sure("compute", read_compute_calibration(root));
  }
  if (root.is_map() && root.has("stack")) return fmt::format("software stack '{}'", SoftwareStack(root).name());
  if (root.is_map() && root.has("cluster")) {
    const Cluster cluster = load_cluster(root, ConfigNode::load_file(data_directory() / "platforms" / "devices.yaml"));
    return fmt::format("cluster '{}' with {}", cluster.name, counted(cluster.trainers(), "device"));
  }
  if (root.is_map() && root.has("target")) {
    const RunsFile target = read_runs_file(file, {});
    return fmt::format("target '{}/{}' with {}", target.paper, target.table, counted(target.runs.size(), "run"));
  }
  throw root.error(
      "neither a study (key `study`) nor a model (key `layers`) nor a calibration (key `calibration`) nor a cluster "
      "(key "
      "`cluster`) nor a target of measured runs (key `target`) nor a software stack (key `stack`)");
}

int validate_all(const std::vector<std::string>& files, const Registries& registries) {
  int code = kDone;
  for (const std::string& file : files) {
    try {
      const std::string what = validate(file, registries);
      std::cout << file << ": " << what << '\n';
    } catch (const ConfigError& problem) {
      std::cerr << problem.what() << '\n';
      code = kBadInput;
    } catch (const GraphError& problem) {
      std::cerr << file << ": " << problem.what() << '\n';
      code = kBadInput;
    }
  }
  return code;
}

}  // namespace

void add_validate_command(CLI::App& app, CommandContext& context) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("validate",
                         "Check studies, models (YAML), platforms (XML) and timings (CSV) without running them.\n"
                         "Example: epocast validate my_study.yaml my_cluster.xml");
  command->add_option("file", *files, "files to check")->required();
  command->callback(
      [files, &context] { context.action = [files, &context] { return validate_all(*files, context.registries); }; });
}

}  // namespace epocast
