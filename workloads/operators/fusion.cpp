#include "workloads/operators/fusion.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace epocast {
namespace {

/// How an operation behaves when it meets others in a kernel.
enum class Role : std::uint8_t {
  apart,   ///< stays as it is
  cheap,   ///< value by value: may be computed again instead of kept
  costly,  ///< sums, softmax, random numbers: in a kernel, but computed once
};

Role role_of(std::string_view type) {
  static const std::set<std::string_view> cheap{"Add",     "Sub",     "Mul",          "RealDiv", "SquaredDifference",
                                                "Pow",     "Select",  "Relu",         "Sigmoid", "Tanh",
                                                "Exp",     "Log",     "Rsqrt",        "Sqrt",    "Neg",
                                                "Less",    "Greater", "GreaterEqual", "Cast",    "Fill",
                                                "Tile",    "Equal",   "ZerosLike",    "AddN",    "Maximum",
                                                "BiasAdd", "Minimum"};
  static const std::set<std::string_view> costly{"ReluGrad", "SigmoidGrad", "TanhGrad",      "RsqrtGrad",  "Sum",
                                                 "Mean",     "Softmax",     "RandomUniform", "BiasAddGrad"};
  return cheap.contains(type) ? Role::cheap : costly.contains(type) ? Role::costly : Role::apart;
}

bool is_matrix_product(std::string_view type) {
  return type == "MatMul" || type == "BatchMatMul" || type.starts_with("Conv2D") || type.starts_with("Conv3D");
}

class Fusion {
 public:
  explicit Fusion(const OperatorGraph& graph) : in_(graph), out_edges_(consumers(graph)) {}

  OperatorGraph run() {
    find_roles();
    find_depths();
    number_units();
    find_recomputed();
    find_exports();
    return build();
  }

 private:
  using Key = std::tuple<std::uint32_t, OperatorPhase, std::int32_t>;
  Key key(std::size_t n) const { return {in_.layer[n], in_.phase[n], in_.step[n]}; }
  bool joins(std::size_t n) const { return role_[n] != Role::apart; }
  bool together(std::size_t a, std::size_t b) const { return unit_[a] == unit_[b]; }
  void find_roles() {
    role_.assign(in_.size(), Role::apart);
    for (std::size_t n = 0; n < in_.size(); ++n) {
      const bool in_a_pass = in_.phase[n] == OperatorPhase::forward || in_.phase[n] == OperatorPhase::backward;
      if (!in_a_pass || in_.lifetime[n] != Lifetime::normal || in_.layers[in_.layer[n]].empty()) continue;
      role_[n] = role_of(in_.operation_of(n));
      // Shapes and other views, and what the host computes, are no reason to end a kernel.
      const bool is_small =
          in_.bytes_read[n] + in_.bytes_written[n] < kHostBytes && !is_matrix_product(in_.operation_of(n));
      if (role_[n] == Role::apart && (is_view(in_, n) || is_small)) role_[n] = Role::costly;
    }
  }

  /// Depths grow along each edge, but within a kernel: nodes of one pass and depth can be one kernel, as no path leads
  /// out of it and back, and no cycle comes to be. First as early as possible, then, where that brings what a kernel
  /// reads into it, later.
  void find_depths() {
    depth_.assign(in_.size(), 0);
    for (std::size_t n = 0; n < in_.size(); ++n)
      for (const std::uint32_t p : in_.producers(n))
        depth_[n] = std::max(depth_[n], depth_[p] + (may_join(p, n) ? 0 : 1));
    for (std::size_t n = in_.size(); n-- > 0;) {
      if (!joins(n)) continue;
      std::int32_t latest = std::numeric_limits<std::int32_t>::max();
      bool any = false;
      for (std::uint32_t i = out_edges_.begin[n]; i < out_edges_.begin[n + 1]; ++i) {
        const std::uint32_t c = out_edges_.consumer[i];
        const bool joined = may_join(n, c);
        any = any || joined;
        latest = std::min(latest, depth_[c] - (joined ? 0 : 1));
      }
      if (any) depth_[n] = std::max(depth_[n], latest);
    }
  }
  bool may_join(std::size_t a, std::size_t b) const { return joins(a) && joins(b) && key(a) == key(b); }

  /// A unit for each node that stays apart and for each connected set of nodes of one pass and depth.
  void number_units() {
    unit_.resize(in_.size());
    std::iota(unit_.begin(), unit_.end(), 0U);
    const auto find = [&](std::uint32_t n) {
      while (unit_[n] != n) n = unit_[n] = unit_[unit_[n]];
      return n;
    };
    for (std::uint32_t n = 0; n < in_.size(); ++n)
      for (const std::uint32_t p : in_.producers(n))
        if (may_join(p, n) && depth_[p] == depth_[n]) unit_[std::max(find(p), find(n))] = std::min(find(p), find(n));
    for (std::uint32_t n = 0; n < in_.size(); ++n) unit_[n] = find(n);
  }

  bool only_gradient_reads(std::size_t n) const {
    for (std::uint32_t i = out_edges_.begin[n]; i < out_edges_.begin[n + 1]; ++i) {
      const std::uint32_t c = out_edges_.consumer[i];
      if (together(n, c)) continue;
      const bool gradient = in_.phase[c] == OperatorPhase::backward && in_.layer[c] == in_.layer[n] && joins(c);
      if (!gradient && in_.phase[c] != OperatorPhase::unused) return false;
    }
    return true;
  }

  /// Of forward nodes: what to read instead of their output, if that is less.
  void find_recomputed() {
    leaves_.resize(in_.size());
    for (std::uint32_t n = 0; n < in_.size(); ++n) {
      if (in_.phase[n] != OperatorPhase::forward || !joins(n) || role_[n] != Role::cheap || !only_gradient_reads(n))
        continue;
      std::map<std::uint32_t, double> instead;
      for (std::uint32_t i = in_.in_begin[n]; i < in_.in_begin[n + 1]; ++i) {
        const std::uint32_t p = owner(in_.producer[i]);
        const double bytes = in_.edge_bytes[i];
        if (bytes <= 0) continue;
        if (together(p, n) && !leaves_[p].empty()) {
          for (const auto& [leaf, of_leaf] : leaves_[p]) instead[leaf] = of_leaf;
        } else {
          instead[p] = std::max(instead[p], bytes);
        }
      }
      double sum = 0;
      for (const auto& [leaf, bytes] : instead) sum += bytes;
      // Constants come along.
      if (!instead.empty() && sum <= in_.output_bytes[n] + kHostBytes) leaves_[n] = std::move(instead);
    }
  }

  /// What node n has to read from other units for input i: whose memory it is, and how much; 0 bytes: it only waits.
  template <class Use>
  void for_each_read(std::uint32_t n, std::uint32_t i, Use use) const {
    const std::uint32_t p = in_.producer[i];
    const bool waits = in_.edge_bytes[i] <= 0 || (joins(n) && in_.bytes_read[n] == 0);  // a view, or a Shape
    if (waits) {
      if (!together(p, n)) use(p, 0.0);
      return;
    }
    const std::uint32_t from = owner(p);
    if (together(from, n)) return;
    if (in_.phase[n] == OperatorPhase::backward && in_.layer[from] == in_.layer[n] && joins(n) &&
        !leaves_[from].empty()) {
      for (const auto& [leaf, bytes] : leaves_[from]) use(leaf, bytes);
    } else {
      use(from, static_cast<double>(in_.edge_bytes[i]));
    }
  }

  /// Whose memory a view shows.
  std::uint32_t owner(std::uint32_t p) const {
    while (joins(p) && is_view(in_, p)) p = in_.producer[in_.in_begin[p]];
    return p;
  }

  void find_exports() {
    exported_.assign(in_.size(), 0);
    for (std::uint32_t n = 0; n < in_.size(); ++n) {
      if (!runs(in_.phase[n])) continue;
      for (std::uint32_t i = in_.in_begin[n]; i < in_.in_begin[n + 1]; ++i)
        for_each_read(n, i, [&](std::uint32_t p, double bytes) {
          if (bytes > 0 && !together(p, n)) exported_[p] = 1;
        });
    }
  }

  OperatorGraph build() const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> members;
    for (std::uint32_t n = 0; n < in_.size(); ++n) members[unit_[n]].push_back(n);
    std::vector<std::uint32_t> order;
    for (const auto& [unit, nodes] : members) order.push_back(unit);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return depth_[a] < depth_[b]; });
    std::vector<std::uint32_t> number(in_.size());
    for (std::uint32_t u = 0; u < order.size(); ++u)
      for (const std::uint32_t n : members[order[u]]) number[n] = u;

    OperatorGraph out;
    out.model = in_.model;
    out.batch = in_.batch;
    out.operations = in_.operations;
    out.operations.emplace_back("Fusion");
    out.layers = in_.layers;
    out.in_begin.push_back(0);
    for (const std::uint32_t unit : order) add_unit(out, members[unit], number);
    return out;
  }

  void add_unit(OperatorGraph& out, const std::vector<std::uint32_t>& nodes,
                const std::vector<std::uint32_t>& number) const {
    const std::uint32_t first = nodes.front();
    const bool fused = nodes.size() > 1;
    out.operation.push_back(fused ? static_cast<std::uint16_t>(out.operations.size() - 1) : in_.operation[first]);
    out.layer.push_back(in_.layer[first]);
    out.step.push_back(in_.step[first]);
    out.phase.push_back(in_.phase[first]);
    out.lifetime.push_back(in_.lifetime[first]);
    out.variable.push_back(in_.variable[first] < 0
                               ? -1
                               : static_cast<std::int32_t>(number[static_cast<std::size_t>(in_.variable[first])]));
    double flop = 0, written = 0;
    std::vector<std::pair<std::uint32_t, double>> reads;  // in the order in which they are read
    for (const std::uint32_t n : nodes) {
      flop += in_.flop[n];
      if (exported_[n]) written += in_.output_bytes[n];
      for (std::uint32_t i = in_.in_begin[n]; i < in_.in_begin[n + 1]; ++i)
        for_each_read(n, i, [&](std::uint32_t p, double bytes) {
          if (unit_[p] != unit_[first]) add_read(reads, p, bytes, fused);
        });
    }
    double read = 0;
    for (const auto& [p, bytes] : reads) {
      read += bytes;
      out.producer.push_back(number[p]);
      out.edge_bytes.push_back(static_cast<float>(bytes));
    }
    out.in_begin.push_back(static_cast<std::uint32_t>(out.producer.size()));
    out.flop.push_back(flop);
    out.bytes_read.push_back(fused ? read : in_.bytes_read[first]);
    out.bytes_written.push_back(fused ? written : in_.bytes_written[first]);
    out.output_bytes.push_back(fused ? written : in_.output_bytes[first]);
  }

  /// A kernel reads an output once, or its parts.
  void add_read(std::vector<std::pair<std::uint32_t, double>>& reads, std::uint32_t p, double bytes, bool fused) const {
    if (fused)
      for (auto& [known, sum] : reads)
        if (known == p) {
          sum = std::min(sum + bytes, std::max(in_.output_bytes[p], bytes));
          return;
        }
    reads.emplace_back(p, bytes);
  }

  const OperatorGraph& in_;
  OperatorConsumers out_edges_;
  // By node.
  std::vector<Role> role_;
  std::vector<std::int32_t> depth_;
  std::vector<std::uint32_t> unit_;                      ///< the first node that is in the same kernel
  std::vector<std::map<std::uint32_t, double>> leaves_;  ///< nodes and bytes; empty: kept as it is
  std::vector<char> exported_;
};

}  // namespace

OperatorGraph fuse_kernels(const OperatorGraph& graph) { return Fusion(graph).run(); }

}  // namespace epocast
