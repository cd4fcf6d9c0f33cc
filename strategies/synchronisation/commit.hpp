#pragma once
// Replicas that train by themselves for some steps, then exchange with parameter servers: DOWNPOUR, elastic averaging
// and their relatives. One class for all; a rule says what is sent, when, who waits and what the server does.
//
// Scope: `period` (lambda) local steps, then one exchange of all that a stage has, the part of each server in one
// message. Each stage has servers of its own. Servers, copies and service times:
// strategies/synchronisation/server_options.hpp. Limits: an exchange does not overlap computation but where the rule
// lets it; arithmetic on whole models is bound by memory, but updates take what the cost model says, in
// proportion to their accesses; what a rule does to convergence is not modelled; versions are
// not counted where devices share layers. Validation: tests/conformance, tests/unit/periodic_commit_test.cpp.

#include <span>

#include "strategies/step/synchronisation.hpp"
#include "strategies/synchronisation/server_options.hpp"

namespace epocast {

/// What an exchange is. `accesses` count reads and writes of every parameter's value.
struct CommitRule {
  /// When a worker pulls, and what it waits for.
  enum class Exchange {
    push_then_pull,  ///< commits, waits until that is applied, pulls the result
    swap,            ///< pushes its parameters and pulls the centre of the round before at the same time
    pull_then_push,  ///< pulls the centre, moves towards it, and commits the difference while it goes on
  };
  const char* name;
  const char* description;
  Exchange exchange;
  bool waits_for_all;       ///< a round ends for all at once
  bool sends_gradients;     ///< their sum, else parameters or differences of parameters
  int prepare_accesses;     ///< of a worker, once per exchange
  int commit_accesses;      ///< of the server, for each commit; kOptimizer: what the study's optimizer needs
  int round_accesses;       ///< of the server, once per round, if it waits for all
  int server_state_values;  ///< per parameter, at the server; kOptimizer: the study's optimizer's

  static constexpr int kOptimizer = -1;
};

/// All rules: one synchronisation each.
std::span<const CommitRule> commit_rules();

class Commit final : public Synchronisation {
 public:
  Commit(const CommitRule& rule, const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int /*replicas*/) const override {
    return {.steps = period_, .one_version = true, .data_only = true, .own_versions = true};
  }
  static EntryInfo info(const CommitRule& rule);

 private:
  const CommitRule& rule_;
  int period_;
  ServerOptions servers_;
};

}  // namespace epocast
