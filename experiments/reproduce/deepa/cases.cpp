#include "experiments/reproduce/deepa/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "experiments/reproduce/simulate.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "strategies/layerwise.hpp"
#include "strategies/layerwise/search.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::deepa {
namespace {

constexpr double kFp32 = 4;  // B

}  // namespace

std::filesystem::path data_folder() { return data_directory() / "experiments" / "reproduce" / "deepa"; }

TargetRow ours(const std::string& row, const std::string& quantity, const std::string& unit, double value,
               const std::string& note) {
  return {.row = row,
          .quantity = quantity,
          .unit = unit,
          .published = std::nullopt,
          .simulated = value,
          .role = Role::exact,  // without a published number: shown only
          .note = note};
}

// Rates and latencies of the platform files, as probe_links() finds them.
const Machine& k80() {
  static const Machine machine{"16 K80", "k80_server", "k80", 16, 4.494e9, 0, 5.7e-6};
  return machine;
}
const Machine& p100_node() {
  static const Machine machine{"4 P100", "p100_cluster", "p100", 4, 20e9, 0, 3.4e-6};
  return machine;
}
const Machine& p100_nodes() {
  static const Machine machine{"16 P100", "p100_cluster", "p100", 16, 20e9, 12.5e9, 14e-6};
  return machine;
}

const Network& alexnet() { return networks()[0]; }
const Network& vgg16() { return networks()[1]; }
const Network& inception_v3() { return networks()[2]; }
const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"AlexNet", "alexnet_owt"}, {"VGG-16", "vgg16"}, {"Inception-v3", "inception_v3"}};
  return all;
}

Model load_network(const Network& network) {
  return load_model(data_directory() / "workloads" / "models" / (network.model + ".yaml"));
}

std::string Case::name() const {
  std::string out = fmt::format("{}, {}", machine.name, network.name);
  if (per_worker != 32) out += fmt::format(", {} images", per_worker * machine.workers);
  if (classes != 1000) out += fmt::format(", {} classes", classes);
  return out;
}

Scenario Case::scenario(const std::string& strategy) const {
  const Study study = load_study(data_folder() / "figures.yaml",
                                 {{"platform", machine.platform},
                                  {"workers", std::to_string(machine.workers)},
                                  {"model", fmt::format("{{name: {}, classes: {}}}", network.model, classes)},
                                  {"batch.per_worker", std::to_string(per_worker)},
                                  {"compute.calibration", machine.calibration},
                                  {"strategy", strategy}});
  return study.scenarios.front();
}

std::string frameworks(double server_rate) {
  return fmt::format("{{name: layerwise, exchange: host_server, server_rate: {} B/s, overlap: false}}", server_rate);
}

std::string deepa_with(const std::string& configuration, bool overlap) {
  return fmt::format("{{name: layerwise, exchange: sharded_servers, overlap: {}, configuration: {}}}", overlap,
                     configuration);
}

EquationOne::EquationOne(const Case& of, TransferRule rule, const TargetContext& target)
    : rule_(rule), workers_(static_cast<std::size_t>(of.machine.workers)), rate_(of.machine.slowest()) {
  const ScenarioSetup setup = read_scenario(of.scenario("{name: layerwise}"), target.registries);
  const PhaseSettings& phase = setup.phases.front();
  const StrategyContext context = setup.context(phase);
  batch_ = context.global_batch;
  network_ = Layerwise::network_of(context, context.trace(context.worker_batch()));
  CostSettings settings;
  settings.rule = rule;
  settings.exchange = GradientExchange::sharded_servers;
  settings.links.device = BytesPerSecond(rule == TransferRule::paper ? rate_ : of.machine.device);
  if (rule == TransferRule::boxes) {
    settings.links.latency = Seconds(of.machine.latency);
    settings.links.node = BytesPerSecond(of.machine.node);
    if (of.machine.node > 0) settings.links.node_of = node_numbers(setup.cluster, phase.workers);
  }
  TileTimes times(context, *network_);
  tables_ = cost_tables(*network_, times, batch_, workers_, kFp32, 0, settings);
  const std::vector<OperatorChoice> found =
      search(tables_, context.device(context.workers.front()).memory.value).operators;
  for (std::size_t op = 0; op < found.size(); ++op) cheapest_.push_back(tables_.index_of(op, found[op].degrees));
}

EquationOne::Choice EquationOne::image() const {
  Choice out;
  for (std::size_t op = 0; op < network_->size(); ++op) out.push_back(tables_.index_of(op, image_degrees(workers_)));
  return out;
}

EquationOne::Choice EquationOne::one_weird_trick() const {
  Choice out;
  for (std::size_t op = 0; op < network_->size(); ++op)
    out.push_back(tables_.index_of(op, one_weird_trick_degrees(*network_, op, workers_)));
  return out;
}

double EquationOne::bytes(const Choice& choice) const {
  if (rule_ == TransferRule::paper) {
    double seconds = 0;
    for (std::size_t op = 0; op < choice.size(); ++op) seconds += tables_.operators[op].update[choice[op]];
    for (const CostGraph::Edge& edge : tables_.graph.edges) seconds += edge.table(choice[edge.from], choice[edge.to]);
    return seconds * rate_;
  }
  std::vector<Configuration> configurations;
  for (std::size_t op = 0; op < choice.size(); ++op)
    configurations.push_back({tables_.operators[op].configurations[choice[op]], {}});
  return traffic(
             make_plan(network_, configurations, batch_, kFp32, LayerwisePipeline::single(workers_), PlaceRule::packed),
             GradientExchange::sharded_servers)
      .total()
      .value;
}

std::size_t EquationOne::number_of(const std::string& op) const {
  const auto found = std::ranges::find(network_->operators(), op, &LayerOperator::name);
  if (found == network_->operators().end()) throw std::logic_error("no operator " + op);
  return static_cast<std::size_t>(found - network_->operators().begin());
}

EquationOne::Choice EquationOne::changed(Choice choice, const std::string& op, const Degrees& degrees) const {
  const std::size_t number = number_of(op);
  choice[number] = tables_.index_of(number, degrees);
  return choice;
}

Degrees EquationOne::degrees(const Choice& choice, const std::string& op) const {
  const std::size_t number = number_of(op);
  return tables_.operators[number].configurations[choice[number]];
}

std::string EquationOne::yaml(const Choice& choice) const {
  std::string out;
  for (std::size_t op = 0; op < choice.size(); ++op)
    out += fmt::format("{}{}: {}", op == 0 ? "{" : ", ", network_->at(op).name,
                       tables_.operators[op].configurations[choice[op]].text());
  return out + "}";
}

std::optional<EquationOne::Choice> stated_choice(const Case& of, const EquationOne& costs) {
  if (of.network.model == inception_v3().model) return std::nullopt;
  Degrees two, halves;
  two[Dimension::c] = 2;
  halves[Dimension::h] = halves[Dimension::w] = 2;
  EquationOne::Choice out = costs.image();
  for (const char* op : {"fc6", "fc7", "fc8"}) out = costs.changed(out, op, two);
  if (of.network.model == vgg16().model && of.machine.name == k80().name)
    for (const char* op : {"conv5_1", "conv5_2", "conv5_3"}) out = costs.changed(out, op, halves);
  return out;
}

void Replays::add(const std::string& name, const Case& of, const std::string& strategy) {
  names_.push_back(name);
  scenarios_.push_back(of.scenario(strategy));
  scenarios_.back().name = name;
}

void Replays::run(const TargetContext& context) {
  std::vector<ScenarioResult> results = simulate(scenarios_, context);
  for (std::size_t i = 0; i < results.size(); ++i) results_[names_[i]] = std::move(results[i]);
  names_.clear();
  scenarios_.clear();
}

double fit_server_rate(const Case& of, double seconds, const TargetContext& context) {
  // Nothing overlaps, so that the time is a line over the reciprocal of the rate.
  constexpr double kSlow = 1e9, kFast = 1e12;  // B/s
  Replays ends;
  ends.add("slow", of, frameworks(kSlow));
  ends.add("fast", of, frameworks(kFast));
  ends.run(context);
  const double slow = ends.seconds("slow"), fast = ends.seconds("fast");
  const double slope = (slow - fast) / (1 / kSlow - 1 / kFast), least = fast - slope / kFast;
  if (seconds <= least)
    throw SimulationError(
        fmt::format("{}: frameworks take {:.3g} s at least, whatever the rate of their server, and "
                    "are to take {:.3g} s",
                    of.name(), least, seconds));
  return slope / (seconds - least);
}

}  // namespace epocast::deepa
