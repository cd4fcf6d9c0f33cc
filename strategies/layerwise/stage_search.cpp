#include "strategies/layerwise/stage_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {
namespace {

/// A run of operators on the workers of one stage.
struct Run {
  double cost = 0;  ///< s of a micro-batch
  bool fits = true;
  std::vector<std::size_t> choice;  ///< by operator of the run
};

/// Of each operator, the first that costs the same and reads the same from as far away.
std::vector<std::size_t> alike(const CostTables& tables) {
  const std::size_t operators = tables.operators.size();
  std::vector<std::vector<const CostGraph::Edge*>> into(operators);
  for (const CostGraph::Edge& edge : tables.graph.edges) into[edge.to].push_back(&edge);
  const auto same = [&](std::size_t a, std::size_t b) {
    const OperatorCosts &one = tables.operators[a], &other = tables.operators[b];
    return one.configurations == other.configurations && one.compute == other.compute && one.update == other.update &&
           one.memory == other.memory && one.kept == other.kept &&
           std::ranges::equal(into[a], into[b], [&](const CostGraph::Edge* x, const CostGraph::Edge* y) {
             return a - x->from == b - y->from && x->table.cost == y->table.cost;
           });
  };
  std::vector<std::size_t> out(operators);
  std::vector<std::size_t> kinds;
  for (std::size_t op = 0; op < operators; ++op) {
    const auto kind = std::ranges::find_if(kinds, [&](std::size_t known) { return same(known, op); });
    out[op] = kind == kinds.end() ? op : *kind;
    if (kind == kinds.end()) kinds.push_back(op);
  }
  return out;
}

/// The tables of a run alone, with so many micro-batches under way.
CostTables tables_of(const CostTables& all, std::size_t first, std::size_t end, int in_flight) {
  const auto range = [&](const auto& of) { return std::vector(of.begin() + first, of.begin() + end); };
  CostTables out{range(all.operators), {range(all.graph.nodes), {}}};
  for (OperatorCosts& costs : out.operators)
    for (std::size_t c = 0; c < costs.memory.size(); ++c) costs.memory[c] += costs.kept[c] * (in_flight - 1);
  for (const CostGraph::Edge& edge : all.graph.edges)
    if (edge.from >= first && edge.to < end)
      out.graph.edges.push_back({edge.from - first, edge.to - first, edge.table});
  return out;
}

/// s to send the tensor before a stage's first operator, and its gradient back.
double received(const OperatorNetwork& network, const StageRequest& request, std::size_t first) {
  if (first == 0) return 0;
  const double values = static_cast<double>(network.at(first - 1).output.values() * request.samples);
  return 2 * values * request.value_bytes / (static_cast<double>(request.workers) * request.between.value);
}

/// Of so many cuts those whose work is nearest to even shares of all.
std::vector<std::size_t> most_even(const std::vector<std::size_t>& cuts, const CostTables& tables) {
  if (cuts.size() <= kMostCuts) return cuts;
  std::vector<double> before{0};
  for (const std::vector<double>& node : tables.graph.nodes)
    before.push_back(before.back() + *std::ranges::min_element(node));
  std::vector<std::size_t> out;
  for (std::size_t i = 1; i <= kMostCuts; ++i) {
    const double wanted = before.back() * static_cast<double>(i) / static_cast<double>(kMostCuts + 1);
    const std::size_t cut =
        *std::ranges::min_element(cuts, {}, [&](std::size_t at) { return std::abs(before[at] - wanted); });
    if (out.empty() || out.back() < cut) out.push_back(cut);
  }
  return out;
}

class StageSearch {
 public:
  StageSearch(const OperatorNetwork& network, const CostTables& tables, const StageRequest& request)
      : network_(network), tables_(tables), request_(request), alike_(alike(tables)) {
    bounds_ = most_even(narrow_cuts(network), tables);
    bounds_.insert(bounds_.begin(), 0);
    bounds_.push_back(network.size());
    const std::vector<StageProgram> programs =
        stage_programs(request.schedule, request.stages, 1, request.micro_batches);
    for (const StageProgram& program : programs) in_flight_.push_back(peak_in_flight(program));
  }

  StagedChoice best() {
    const auto stages = static_cast<std::size_t>(request_.stages);
    if (bounds_.size() <= stages)
      throw SplitError(fmt::format("the network can be cut at {} places only", bounds_.size() - 2));
    std::optional<StagedChoice> out;
    for (const bool must_fit : {true, false}) {
      std::vector<double> slowest;
      for (std::size_t s = 0; s < stages; ++s)
        for_runs(s, [&](std::size_t i, std::size_t j) {
          if (run(s, i, j).fits || !must_fit) slowest.push_back(run(s, i, j).cost);
        });
      std::ranges::sort(slowest);
      slowest.erase(std::unique(slowest.begin(), slowest.end()), slowest.end());
      for (const double longest : slowest) {
        if (out && (request_.micro_batches - 1) * longest >= out->cost) break;
        if (std::optional<StagedChoice> found = within(longest, must_fit); found && (!out || found->cost < out->cost))
          out = std::move(found);
      }
      if (out) break;
    }
    return *out;
  }

 private:
  /// Stage s may be from bound i to bound j: stages before and behind it have one operator at least.
  template <class Visit>
  void for_runs(std::size_t s, Visit visit) const {
    const auto stages = static_cast<std::size_t>(request_.stages);
    const std::size_t last = bounds_.size() - 1;
    for (std::size_t i = s; i + (stages - s) <= last; ++i) {
      if (s == 0 && i > 0) break;
      for (std::size_t j = i + 1; j + (stages - s - 1) <= last; ++j)
        if (s + 1 < stages || j == last) visit(i, j);
    }
  }

  /// Runs of operators that are alike are searched once.
  const Run& run(std::size_t stage, std::size_t i, std::size_t j) {
    const std::size_t first = bounds_[i], end = bounds_[j];
    const int in_flight = request_.memory_limit > 0 ? in_flight_[stage] : 1;
    std::vector<std::size_t> key(alike_.begin() + static_cast<std::ptrdiff_t>(first),
                                 alike_.begin() + static_cast<std::ptrdiff_t>(end));
    key.push_back(static_cast<std::size_t>(in_flight));
    key.push_back(first == 0 ? 0 : network_.at(first - 1).output.values());
    const auto [known, is_new] = runs_.try_emplace(std::move(key));
    if (!is_new) return known->second;
    const CostTables own = tables_of(tables_, first, end, in_flight);
    const Choice found = cheapest(own, request_.memory_limit);
    known->second = {own.graph.cost(found.choice) + received(network_, request_, first), found.fits, found.choice};
    return known->second;
  }

  /// The least sum of all stages' times with none above `longest`.
  std::optional<StagedChoice> within(double longest, bool must_fit) {
    const auto stages = static_cast<std::size_t>(request_.stages);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    const std::vector<double> unknown(bounds_.size(), kNone);
    std::vector<std::vector<double>> sum(stages + 1, unknown);
    std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(bounds_.size(), 0));
    sum[0][0] = 0;
    for (std::size_t s = 0; s < stages; ++s)
      for_runs(s, [&](std::size_t i, std::size_t j) {
        if (sum[s][i] == kNone) return;
        const Run& own = run(s, i, j);
        if (own.cost > longest || (must_fit && !own.fits) || sum[s][i] + own.cost >= sum[s + 1][j]) return;
        sum[s + 1][j] = sum[s][i] + own.cost;
        from[s + 1][j] = i;
      });
    std::size_t at = bounds_.size() - 1;
    if (sum[stages][at] == kNone) return std::nullopt;
    StagedChoice out;
    double slowest = 0;
    for (std::size_t s = stages; s-- > 0;) {
      const std::size_t begin = from[s + 1][at];
      const Run& own = run(s, begin, at);
      slowest = std::max(slowest, own.cost);
      out.fits = out.fits && own.fits;
      out.choice.insert(out.choice.begin(), own.choice.begin(), own.choice.end());
      out.first_operators.insert(out.first_operators.begin(), bounds_[begin]);
      at = begin;
    }
    out.cost = sum[stages].back() + (request_.micro_batches - 1) * slowest;
    return out;
  }

  const OperatorNetwork& network_;
  const CostTables& tables_;
  const StageRequest& request_;
  std::vector<std::size_t> alike_;
  std::vector<std::size_t> bounds_;  ///< where runs may begin, then the number of operators
  std::vector<int> in_flight_;       ///< by stage
  std::map<std::vector<std::size_t>, Run> runs_;
};

}  // namespace

std::vector<std::size_t> narrow_cuts(const OperatorNetwork& network) {
  std::vector<std::size_t> out;
  for (std::size_t cut = 1; cut < network.size(); ++cut) {
    // Everything that crosses is the output of the operator in front.
    const bool is_narrow = std::ranges::all_of(network.edges(), [&](const OperatorEdge& edge) {
      return edge.from >= cut || edge.to < cut || edge.from == cut - 1;
    });
    if (is_narrow) out.push_back(cut);
  }
  return out;
}

double step_cost(const OperatorNetwork& network, const CostTables& tables, const StageRequest& request,
                 const std::vector<std::size_t>& first_operators, const std::vector<std::size_t>& choice) {
  double sum = 0, slowest = 0;
  for (std::size_t s = 0; s < first_operators.size(); ++s) {
    const std::size_t first = first_operators[s];
    const std::size_t end = s + 1 < first_operators.size() ? first_operators[s + 1] : choice.size();
    const std::vector<std::size_t> own(choice.begin() + static_cast<std::ptrdiff_t>(first),
                                       choice.begin() + static_cast<std::ptrdiff_t>(end));
    const double cost = tables_of(tables, first, end, 1).graph.cost(own) + received(network, request, first);
    sum += cost;
    slowest = std::max(slowest, cost);
  }
  return sum + (request.micro_batches - 1) * slowest;
}

StagedChoice search_stages(const OperatorNetwork& network, const CostTables& tables, const StageRequest& request) {
  return StageSearch(network, tables, request).best();
}

}  // namespace epocast
