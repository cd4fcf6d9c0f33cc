#pragma once
// DeePa's networks on its machines: what equation 1 says of a global configuration, and studies that replay it. The two
// share the times of the cost model and nothing else: equation 1 knows neither overlap nor contention.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/reproduce/target.hpp"
#include "sim/model.hpp"
#include "strategies/layerwise/cost_tables.hpp"

namespace epocast::deepa {

std::filesystem::path data_folder();

/// A row without a published number.
TargetRow ours(const std::string& row, const std::string& quantity, const std::string& unit, double value,
               const std::string& note);

/// One of DeePa's machines, or a part of it.
struct Machine {
  std::string name;  ///< as in the published tables
  std::string platform, calibration;
  int workers = 1;
  double device = 0;   ///< B/s of a device's link to others of its node
  double node = 0;     ///< B/s of a node's link to others; 0: there is one node
  double latency = 0;  ///< s of the longest route

  /// The one rate of equation 1 by the paper's rules.
  double slowest() const { return node > 0 ? std::min(device, node) : device; }
};

const Machine& k80();         ///< section 7.1
const Machine& p100_node();   ///< one node of section 7.3
const Machine& p100_nodes();  ///< all four of them

struct Network {
  std::string name;  ///< as in the published tables
  std::string model;
};

const Network& alexnet();
const Network& vgg16();
const Network& inception_v3();
/// These three.
const std::vector<Network>& networks();

Model load_network(const Network& network);

struct Case {
  Network network;
  Machine machine;
  int per_worker = 32;  ///< images
  int classes = 1000;

  /// "16 K80, VGG-16", and what differs from 32 images per worker and 1,000 classes.
  std::string name() const;
  /// The case with a strategy, in flow style. Throws ConfigError.
  Scenario scenario(const std::string& strategy) const;
};

/// Image parallelism with a server in host memory, after the backward pass: neither of the optimisations of section 5.
std::string frameworks(double server_rate);
/// DeePa with degrees by operator: every device the server of its part, unless told otherwise during the backward pass.
std::string deepa_with(const std::string& configuration, bool overlap = true);

/// Equation 1 of a case, times of computing from the cost model. By the paper's rules, or with boxes over the
/// platform's links and every device the server of its part.
class EquationOne {
 public:
  /// A configuration's number, by operator.
  using Choice = std::vector<std::size_t>;

  EquationOne(const Case& of, TransferRule rule, const TargetContext& context);

  Choice image() const;
  Choice one_weird_trick() const;
  /// The cheapest within the devices' memory.
  const Choice& cheapest() const { return cheapest_; }
  /// `choice` with other degrees of one operator.
  Choice changed(Choice choice, const std::string& op, const Degrees& degrees) const;

  double seconds(const Choice& choice) const { return tables_.graph.cost(choice); }
  /// Bytes of a step. By the paper's count: 2 n copies of what n devices hold, and all that the devices of an operator
  /// read where its degrees differ from those before it, there and back. By boxes: what devices lack.
  double bytes(const Choice& choice) const;
  Degrees degrees(const Choice& choice, const std::string& op) const;
  /// For the option `configuration` of `layerwise`.
  std::string yaml(const Choice& choice) const;

 private:
  std::size_t number_of(const std::string& op) const;

  TransferRule rule_;
  std::shared_ptr<const OperatorNetwork> network_;
  std::int64_t batch_ = 0;
  std::size_t workers_ = 0;
  double rate_ = 0;  ///< B/s of the paper's rules
  CostTables tables_;
  Choice cheapest_;
};

/// What the text says of DeePa's choice: images over all devices, channels of fully connected layers over two (7.1.2,
/// A.3), rows and columns of the last three convolutions of VGG-16 on K80 halved (7.1.3). Of Inception-v3 only an image
/// is there: nothing. The paper's rules cannot find it again: as configurations that are equal move nothing, channels
/// over all devices everywhere cost nothing but computing.
std::optional<EquationOne::Choice> stated_choice(const Case& of, const EquationOne& costs);

/// Scenarios by name, simulated all at once.
class Replays {
 public:
  void add(const std::string& name, const Case& of, const std::string& strategy);
  /// What has been added since the last time. Throws ConfigError and SimulationError.
  void run(const TargetContext& context);
  const ScenarioResult& at(const std::string& name) const { return results_.at(name); }
  double seconds(const std::string& name) const { return at(name).iteration_s; }

 private:
  std::vector<std::string> names_;
  std::vector<Scenario> scenarios_;
  std::map<std::string, ScenarioResult> results_;
};

/// The rate of the server in host memory [B/s] with which frameworks take so many seconds for a step. Throws
/// SimulationError if no rate makes them as fast.
double fit_server_rate(const Case& of, double seconds, const TargetContext& context);

}  // namespace epocast::deepa
