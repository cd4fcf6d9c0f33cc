#include "sim/collectives/algorithm_choice.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "sim/collectives/algorithms.hpp"
#include "sim/collectives/library_rules.hpp"
#include "sim/collectives/plan.hpp"
#include "sim/collectives/runner.hpp"

namespace epocast {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kMeasuredBytes = 1e9;  // any size does: times are linear in it

/// Off a star, P^2 pairs are not looked at for larger groups: a ring does the same with P.
constexpr int kMostPairwiseRanks = 256;

/// Runs a collective on an idle network, for its time. The engine's clock goes on meanwhile.
class LoneRun final : SimEngine::Listener {
 public:
  explicit LoneRun(SimEngine& engine) : engine_(engine), traffic_(engine), runner_(engine, traffic_, 0, 1, nullptr) {}

  double seconds(const CollectivePlan& plan, const std::vector<int>& hosts) {
    const double start = engine_.now();
    engine_.set_listener(*this);
    engine_.declare_flows({});
    runner_.start(plan, hosts, 0);
    engine_.run();
    return engine_.now() - start;
  }

 private:
  void on_timer(std::uint64_t token) override { runner_.on_timer(token); }
  void on_flow_done(std::uint64_t token) override { runner_.on_flow_done(token); }
  std::uint64_t order(std::uint64_t token, bool /*is_flow*/) const override {
    return CollectiveRunner::message_of(token);
  }

  SimEngine& engine_;
  TrafficCounter traffic_;
  CollectiveRunner runner_;
};

}  // namespace

AlgorithmChoice::AlgorithmChoice(const std::vector<int>& hosts, const std::vector<int>& node_of,
                                 const GroupNetwork& network, SimEngine& engine)
    : hosts_(hosts), node_of_(node_of), network_(network), engine_(engine) {
  for (const int node : node_of) {
    if (static_cast<std::size_t>(node) >= ranks_on_node_.size())
      ranks_on_node_.resize(static_cast<std::size_t>(node) + 1);
    ++ranks_on_node_[static_cast<std::size_t>(node)];
  }
  for (const int ranks : ranks_on_node_) equal_nodes_ = equal_nodes_ && ranks == ranks_on_node_.front();
}

CollectiveAlgorithm AlgorithmChoice::choose(const Collective& collective, Among among) {
  if (!is_choice(collective.algorithm)) return collective.algorithm;
  const auto [place, is_new] = chosen_.try_emplace(
      {collective.algorithm, collective.op, collective.bytes.value, collective.gamma, collective.rings, among});
  if (is_new) place->second = choose_anew(collective, among);
  return place->second;
}

CollectiveAlgorithm AlgorithmChoice::choose_anew(const Collective& collective, Among among) {
  using A = CollectiveAlgorithm;
  if (collective.algorithm == A::automatic) return fastest(collective, among);
  const A of_library = collective.algorithm == A::nccl
                           ? taken_by_nccl(collective, among)
                           : taken_by_mpich(collective.op, static_cast<int>(hosts_.size()), collective.bytes.value);
  if (among == Among::all || among == Among::timed || is_symmetric(collective.op, of_library)) return of_library;
  if (among == Among::in_step && of_library != CollectiveAlgorithm::double_binary_tree) return of_library;
  return fastest(collective, among);
}

/// Whether each rank sends as many bytes as any other and receives as many, round by round, inside its node and beyond.
bool AlgorithmChoice::is_symmetric(CollectiveOp op, CollectiveAlgorithm algorithm) {
  const auto [place, is_new] = symmetric_.try_emplace({op, algorithm}, false);
  if (!is_new) return place->second;
  const auto ranks = static_cast<int>(hosts_.size());
  const std::size_t nodes = ranks_on_node_.size();
  const bool same_way = nodes == 1 || nodes == hosts_.size();  // all that a rank sends
  if (!same_way && algorithm == CollectiveAlgorithm::pairwise && ranks > kMostPairwiseRanks) return false;
  const CollectiveSchedule schedule = make_schedule(op, algorithm, ranks, 1, node_of_);
  return place->second = std::ranges::all_of(schedule.rounds, [&](const Round& round) {
           if (round.is_uniform() && same_way) return true;
           using Sums = std::vector<std::array<double, 4>>;  // by rank: sent and received inside the node, and beyond
           Sums sums(hosts_.size(), std::array<double, 4>{});
           for_each_message(round, ranks, [&](const Message& message) {
             const auto from = static_cast<std::size_t>(message.from), to = static_cast<std::size_t>(message.to);
             const std::size_t beyond = node_of_[from] == node_of_[to] ? 0 : 2;
             sums[from][beyond] += message.bytes;
             sums[to][beyond + 1] += message.bytes;
           });
           return std::ranges::all_of(sums, [&](const auto& own) { return own == sums.front(); });
         });
}

bool AlgorithmChoice::can_run(const Collective& collective) const {
  using A = CollectiveAlgorithm;
  if (!supports(collective.algorithm, collective.op)) return false;
  return collective.algorithm != A::hierarchical || equal_nodes_;
}

CollectiveAlgorithm AlgorithmChoice::fastest(const Collective& collective, Among among) {
  using A = CollectiveAlgorithm;
  Collective candidate = collective;
  const auto ranks = static_cast<int>(hosts_.size());
  CollectiveAlgorithm best = default_algorithm(collective.op);
  double least = kInfinite;
  const auto consider = [&](A algorithm) {
    candidate.algorithm = algorithm;
    if (collective.rings > 0 &&
        (!has_rings(algorithm, collective.op) || most_rings(candidate, network_) < collective.rings))
      return;
    const double time = predict(candidate);
    if (time >= least * (1 - 1e-9)) return;  // equal but for rounding
    least = time;
    best = algorithm;
  };
  for (const collectives::Algorithm& entry : collectives::algorithms()) {
    candidate.algorithm = entry.id;
    if (!can_run(candidate) || entry.id == A::double_binary_tree) continue;
    if (among == Among::symmetric && !is_symmetric(collective.op, entry.id)) continue;
    const bool has_rival = collective.op != CollectiveOp::all_to_all && collective.op != CollectiveOp::gather &&
                           collective.op != CollectiveOp::scatter;
    if (entry.id == A::pairwise && has_rival && !network_.uniform &&
        (ranks > kMostPairwiseRanks || least_pairwise(collective) >= least))
      continue;
    consider(entry.id);
  }
  candidate.algorithm = A::double_binary_tree;  // last, as it takes the longest to predict
  const bool may_be_tree = among == Among::all || (among == Among::timed && network_.uniform);
  if (may_be_tree && supports(A::double_binary_tree, collective.op) && least_double_tree(collective, least) < least)
    consider(A::double_binary_tree);
  return best;
}

CollectiveAlgorithm AlgorithmChoice::taken_by_nccl(const Collective& collective, Among among) {
  using A = CollectiveAlgorithm;
  const bool one_rank_each = ranks_on_node_.size() == hosts_.size();
  const A rings = ranks_on_node_.size() == 1 || one_rank_each ? A::ring : A::multi_ring;
  // Its trees, with a chain in each node, and its rings, along which it broadcasts and reduces, move piece by piece and
  // use all cards of a node, which no tree here does: the fastest is what is nearest to them.
  const auto piecewise = [&] { return rings == A::ring ? A::double_binary_tree : fastest(collective, among); };
  switch (collective.op) {
    case CollectiveOp::all_reduce: break;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather: return rings;
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce: return piecewise();
    default: return A::pairwise;  // sends and receives, as the caller writes them
  }
  constexpr double kNvlink1 = 20e9;  // B/s of the slowest NVLink, which PCIe gen3 (15.75e9) does not reach
  const auto ranks = static_cast<int>(hosts_.size());
  Collective ring = collective;
  ring.algorithm = rings;
  ring.bytes = Bytes(0);
  const double latency = predict(ring);
  ring.bytes = Bytes(kMeasuredBytes);
  ring.gamma = 0;
  const double moved = 2.0 * (ranks - 1) / ranks * kMeasuredBytes;
  NcclNetwork network{.ranks = ranks,
                      .nodes = static_cast<int>(ranks_on_node_.size()),
                      .bus_bandwidth = moved / (predict(ring) - latency)};
  double widest = 0;  // B/s from the first rank to another of its node
  for (int r = 1; r < ranks; ++r)
    if (node_of_[static_cast<std::size_t>(r)] == node_of_.front())
      widest = std::max(widest, engine_.route(hosts_.front(), hosts_[static_cast<std::size_t>(r)]).bandwidth);
  network.nvlink = widest >= kNvlink1 * (1 - 1e-9);
  network.ll128 = widest > kNvlink1 * (1 + 1e-9);
  return all_reduce_of_nccl(network, collective.bytes.value) == A::ring ? rings : piecewise();
}

double AlgorithmChoice::predict(const Collective& collective) {
  if (!can_run(collective)) return kInfinite;
  if (collective.algorithm == CollectiveAlgorithm::double_binary_tree) return predict_double_tree(collective);
  if (engine_.window() > 0) return idle_time_of(collective, collective.bytes.value).seconds(collective.gamma);
  const auto [place, is_new] =
      measured_.try_emplace({collective.op, collective.algorithm, collective.rings}, IdleTime{});
  if (is_new) place->second = measure(collective);
  const IdleTime& of_measured = place->second;
  const double size = collective.bytes.value / kMeasuredBytes;
  return of_measured.latency + size * (of_measured.transmission + of_measured.reduction_bytes * collective.gamma);
}

IdleTime AlgorithmChoice::measure(const Collective& collective) {
  const auto ranks = static_cast<int>(hosts_.size());
  if (network_.uniform) {
    const auto formula = [&](AlphaBetaGamma link) {
      return closed_form_time(collective.op, collective.algorithm, ranks, kMeasuredBytes, link, node_of_);
    };
    return {formula({network_.alpha, 0, 0}), formula({0, network_.beta, 0}), formula({0, 0, 1})};
  }
  return idle_time_of(collective, kMeasuredBytes);
}

IdleTime AlgorithmChoice::idle_time_of(const Collective& collective, double bytes) {
  const CollectiveSchedule schedule =
      make_schedule(collective.op, collective.algorithm, static_cast<int>(hosts_.size()), bytes, node_of_);
  const std::vector<Ring> rings = rings_of(collective, network_);
  return idle_time(in_windows(schedule, window_of(rings, engine_.window())), hosts_, network_, rings, engine_);
}

/// Its ranks are not in step. On a star all its messages take equally long if reductions are free, so that its time is
/// that of the messages on its longest path. Elsewhere some share links, and only a simulation tells, of messages or,
/// in a large group, of streams.
double AlgorithmChoice::predict_double_tree(const Collective& collective) {
  const auto ranks = static_cast<int>(hosts_.size());
  const double bytes = collective.bytes.value;
  const auto schedule = [&] {
    return in_windows(make_schedule(collective.op, collective.algorithm, ranks, bytes), engine_.window());
  };
  if (!network_.uniform) {
    Collective alone = collective;
    alone.level = CollectiveLevel::flow;
    const CollectivePlan plan = plan_collective(alone, hosts_, node_of_, network_, false, engine_);
    return LoneRun(engine_).seconds(plan, hosts_);
  }
  if (collective.gamma > 0 || engine_.window() > 0)
    return idle_time_on_star(schedule(), {network_.alpha, network_.beta, collective.gamma});
  const int chunks = collectives::double_tree_chunks(collective.op, ranks, bytes);
  const auto [place, is_new] = tree_messages_.try_emplace({collective.op, chunks});
  if (is_new) place->second = idle_time_on_star(schedule(), {1, 0, 0});
  return place->second * (network_.alpha + bytes / 2 / chunks * network_.beta);
}

/// What predict() cannot be below: the messages of the first rank, one after the other. It asks for P routes instead of
/// P^2.
double AlgorithmChoice::least_pairwise(const Collective& collective) {
  const CollectiveSchedule schedule = make_schedule(collective.op, CollectiveAlgorithm::pairwise,
                                                    static_cast<int>(hosts_.size()), collective.bytes.value);
  double time = 0;
  for (const Round& round : schedule.rounds)
    for_each_message(round, schedule.ranks, [&](const Message& m) {
      if (m.from != 0) return;
      const Route& route = engine_.route(hosts_[0], hosts_[static_cast<std::size_t>(m.to)]);
      time += engine_.collective_latency(route) + m.bytes / route.bandwidth + m.reduce_bytes * collective.gamma;
    });
  return time;
}

/// What predict() cannot be below, or as much of it as is `enough`. On a star: a rank sends the chunks of both trees
/// one after the other, and the last level gets the first chunk after all others; of a reduction, it combines what two
/// children send it. Elsewhere: what the busiest link needs, or the ranks if no messages shared a link.
double AlgorithmChoice::least_double_tree(const Collective& collective, double enough) {
  constexpr auto kTree = CollectiveAlgorithm::double_binary_tree;
  const auto ranks = static_cast<int>(hosts_.size());
  const double bytes = collective.bytes.value;
  if (!network_.uniform) {
    const auto [place, is_new] = tree_busiest_.try_emplace(collective.op);
    if (is_new) place->second = time_of_busiest_link(make_schedule(collective.op, kTree, ranks, 1), hosts_, engine_);
    if (bytes * place->second >= enough) return bytes * place->second;
    return std::max(bytes * place->second, idle_time_of_messages(make_schedule(collective.op, kTree, ranks, bytes),
                                                                 hosts_, collective.gamma, engine_));
  }
  const int chunks = collectives::double_tree_chunks(collective.op, ranks, bytes);
  const int passes = collective.op == CollectiveOp::all_reduce ? 2 : 1;
  const bool reduces = collective.op != CollectiveOp::broadcast && ranks > 2;
  const int rounds = ranks > 2 ? std::max(2 * chunks, collectives::double_tree_depth(collective.op, ranks)) : 1;
  return passes * rounds * (network_.alpha + bytes / 2 / chunks * network_.beta) +
         (reduces ? bytes * collective.gamma : 0);
}

}  // namespace epocast
