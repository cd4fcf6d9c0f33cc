#pragma once
// A global configuration, ready to be replayed: every operator divided, and how gradients are exchanged.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sim/quantity.hpp"
#include "strategies/layerwise/division.hpp"
#include "strategies/schedules/schedule.hpp"
#include "strategies/step/shared_table.hpp"

namespace epocast {

/// Where the gradients of parameters that several places hold are added up.
enum class GradientExchange {
  all_reduce,       ///< by all places that hold them
  host_server,      ///< by a parameter server in host memory, which all places of all operators share
  device_servers,   ///< by one of the places, for each operator another one
  sharded_servers,  ///< by all of the places, each the server of its part (DeePa, section 5)
};

const char* to_string(GradientExchange exchange);

/// Which workers an operator with fewer places than there are workers is on.
enum class PlaceRule {
  packed,  ///< the first ones
  spread,  ///< evenly over all
};

/// Worker of each place.
std::vector<int> devices_of(std::int64_t places, std::size_t workers, PlaceRule rule);

/// One operator's part of a global configuration.
struct Configuration {
  Degrees degrees;
  std::vector<int> devices;  ///< worker by place; empty: by the rule
};

/// A run of operators on workers of its own: those next to the stage's before.
struct LayerwiseStage {
  std::size_t first_operator = 0;
  std::size_t workers = 0;
};

/// How the batch goes through the stages.
struct LayerwisePipeline {
  std::vector<LayerwiseStage> stages;  ///< in the network's order, at least one; the first begins with operator 0
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;  ///< gpipe or one_f_one_b
  int micro_batches = 1;

  static LayerwisePipeline single(std::size_t workers) { return {{{0, workers}}}; }
  std::size_t stage_of_operator(std::size_t op) const;
  std::size_t stage_of_worker(std::size_t worker) const;
  /// Of a stage.
  std::size_t first_worker(std::size_t stage) const;
  std::vector<StageProgram> programs() const {
    return stage_programs(schedule, static_cast<int>(stages.size()), 1, micro_batches);
  }
};

struct LayerwisePlan {
  std::shared_ptr<const OperatorNetwork> network;  ///< in which stages that share a table have copies of their own
  std::vector<SharedTable> tables = {};
  std::vector<Division> divisions;  ///< by operator, of a micro-batch
  LayerwisePipeline pipeline;
  double value_bytes = 4;     ///< of an activation or parameter
  double gradient_bytes = 4;  ///< of a parameter's gradient as it travels

  Bytes bytes_of(const Piece& piece) const { return Bytes(static_cast<double>(piece.values) * value_bytes); }
};

/// `batch`: of all workers together. REQUIRES: configurations within the operators' limits for a micro-batch, on so
/// many workers at most as their stage has; micro-batches that divide the batch.
LayerwisePlan make_plan(std::shared_ptr<const OperatorNetwork> network,
                        const std::vector<Configuration>& configurations, std::int64_t batch, double value_bytes,
                        const LayerwisePipeline& pipeline, PlaceRule rule);

/// Places that add up their gradients of the same part of a table, each on a stage of its own.
struct TableTeam {
  struct Member {
    std::size_t op = 0, layer = 0, place = 0;
  };
  std::vector<Member> members;
  double values = 0;  ///< of the part
};

/// Where copies are divided like the original, each place with its counterparts; else all places with a table, its
/// largest part: an assumption.
std::vector<TableTeam> table_teams(const LayerwisePlan& plan);

/// Bytes between different devices in one step. Of gradients: messages of all-reduces by ring or halving and doubling,
/// or to and from servers.
struct PlanTraffic {
  Bytes forward;    ///< activations
  Bytes backward;   ///< their gradients
  Bytes sums;       ///< parts of sums forward, and their gradients backward
  Bytes gradients;  ///< of parameters

  Bytes total() const { return forward + backward + sums + gradients; }
};

/// Whether gradients of an edge's tensor are sent back: something before it is trained.
bool sends_back(const OperatorNetwork& network, const OperatorEdge& edge);
/// Bytes of one shard's exchange, there and back.
Bytes exchanged(GradientExchange exchange, Bytes shard, std::size_t places);
/// Of the operators' gradients and of the messages into it.
PlanTraffic traffic_of(const LayerwisePlan& plan, std::size_t op, GradientExchange exchange);
PlanTraffic traffic(const LayerwisePlan& plan, GradientExchange exchange);

}  // namespace epocast
