#pragma once
// What a step costs by DeePa's equation 1: every operator's computing and exchange of gradients, every edge's
// transfer, for every pair of configurations; nothing overlaps, nothing contends.

#include <cstddef>
#include <memory>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/quantity.hpp"
#include "strategies/layerwise/elimination.hpp"
#include "strategies/layerwise/plan.hpp"
#include "strategies/layerwise/tile_times.hpp"

namespace epocast {

/// What the machine's links carry, as simple as equation 1 needs it.
struct LinkRates {
  BytesPerSecond device{0};  ///< of a device, in and out at a time, to others of its node
  BytesPerSecond node{0};    ///< of a node, in and out at a time; 0: all workers are on one node
  std::vector<int> node_of;  ///< by worker; empty: all on one
  Seconds latency{0};        ///< of a message
};

/// By worker: which of the cluster's nodes it is on, numbered in the order of the workers.
std::vector<int> node_numbers(const Cluster& cluster, const std::vector<DeviceId>& workers);

/// How many bytes a pair of configurations moves, and how long that takes.
enum class TransferRule {
  boxes,  ///< boxes that a device lacks, over the links of the device or node with the most to send or receive
  paper,  ///< all of what every device needs, one after the other; equal configurations move nothing (DeePa, section 3)
};

struct CostSettings {
  std::vector<Dimension> dimensions{Dimension::n, Dimension::c, Dimension::h, Dimension::w};
  TransferRule rule = TransferRule::boxes;
  GradientExchange exchange = GradientExchange::all_reduce;
  LinkRates links;
  BytesPerSecond server_rate{0};  ///< of GradientExchange::host_server
  PlaceRule places = PlaceRule::packed;
  int micro_batches = 1;  ///< of a step: tables are of one, with its share of what is done once a step
};

/// Bytes that one tensor needs for a pair of configurations, in one direction.
struct TransferBytes {
  double total = 0;     ///< between devices
  double busiest = 0;   ///< in or out of one device
  double node = 0;      ///< in or out of one node
  double messages = 0;  ///< out of one device
};

/// By operator and configuration.
struct OperatorCosts {
  std::vector<Degrees> configurations;
  std::vector<double> compute;  ///< s: forward and backward on the slowest device, and, by boxes, its update
  std::vector<double> update;   ///< s: exchange of gradients, and of sums
  std::vector<double> memory;   ///< B on one device: parameters, gradients, optimizer's state, kept activations
  std::vector<double> kept;     ///< B of these: activations, of each micro-batch under way
};

struct CostTables {
  std::vector<OperatorCosts> operators;
  CostGraph graph;

  /// The configuration's place in the operator's list. REQUIRES: it is there.
  std::size_t index_of(std::size_t op, const Degrees& degrees) const;
};

/// Time to exchange an operator's gradients, a micro-batch's share of it, and sums if there are any.
Seconds update_time(const Division& division, double value_bytes, const CostSettings& settings);

/// Of the network on so many workers. Throws what TileTimes throws.
CostTables cost_tables(const OperatorNetwork& network, TileTimes& times, std::int64_t batch, std::size_t workers,
                       double value_bytes, double state_bytes, const CostSettings& settings);

/// The table of one edge alone [s, forward and backward]; rows: configurations of its source.
CostTable transfer_table(const OperatorNetwork& network, const OperatorEdge& edge, const std::vector<Degrees>& from,
                         const std::vector<Degrees>& to, std::int64_t batch, std::size_t workers, double value_bytes,
                         const CostSettings& settings);

}  // namespace epocast
