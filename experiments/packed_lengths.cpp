#include "experiments/packed_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "costmodels/software_stack.hpp"

namespace epocast {
namespace {

constexpr Range kLengths{1, 1e9};

/// Lengths that stand for the distribution: equal steps of the logarithm, far into both tails, as squares of squares
/// matter.
std::vector<std::pair<double, double>> log_normal(double mean, double cv) {
  if (cv == 0) return {{mean, 1.0}};
  constexpr double kReach = 9, kStep = 1.0 / 128;
  const double variance = std::log1p(cv * cv), location = std::log(mean) - variance / 2;
  std::vector<std::pair<double, double>> out;
  for (double z = -kReach; z <= kReach; z += kStep)
    out.emplace_back(std::exp(location + std::sqrt(variance) * z),
                     kStep * std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return out;
}

/// Calls visit(length, how many) for the pieces that fit into a sample.
template <class Visit>
void for_each_piece(double length, double most, Visit visit) {
  const double whole = std::floor(length / most), rest = length - whole * most;
  if (whole > 0) visit(most, whole);
  if (rest > 0) visit(rest, 1.0);
}

}  // namespace

PackedLengths::PackedLengths(const ConfigNode& node) : place_(node) {
  if (node.is_map()) {
    lengths_ = log_normal(node.at("mean").as_double(kLengths), node.get("cv", 0.0, Range{0, 100}));
    node.check_all_read();
    return;
  }
  double sum = 0;
  for (const ConfigNode& item : node.items()) {
    const std::vector<ConfigNode> pair = item.items();
    if (pair.size() != 2) throw item.error("must be [length, share of the sequences], as in [512, 0.3]");
    lengths_.emplace_back(pair[0].as_double(kLengths), pair[1].as_double(Range{0, 1e12}));
    sum += lengths_.back().second;
  }
  if (!(sum > 0)) throw node.error("no sequences; give lengths with their shares, as in [[512, 0.7], [2048, 0.3]]");
  for (auto& [length, share] : lengths_) share /= sum;
}

PackedLengths::Squares PackedLengths::in(double length) const {
  double pieces = 0, first = 0, second = 0;
  const auto sum = [&](auto of) {
    for (const auto& [own, share] : lengths_)
      for_each_piece(own, length, [&, each = share](double piece, double count) { of(piece, each * count); });
  };
  sum([&](double piece, double weight) {
    pieces += weight;
    first += weight * piece;
    second += weight * piece * piece;
  });
  const double ratio = second / first;  // m2 / m1
  double variance = 0;                  // the mean of l^2 - l m2 / m1 is 0
  sum([&](double piece, double weight) {
    const double deviation = piece * piece - piece * ratio;
    variance += weight / pieces * deviation * deviation;
  });
  const double sequences = length / (first / pieces);
  return {.share = ratio / length, .cv = std::sqrt(sequences * variance) / (ratio * length)};
}

Model PackedLengths::packed(Model model) const {
  double longest = 0;
  for (Layer& layer : model.layers) {
    if (layer.kind != LayerKind::attention || !layer.parameters.empty()) continue;
    const auto length = static_cast<double>(layer.output.width);
    const Squares squares = in(length);
    if (length > longest) cv_ = squares.cv;
    longest = std::max(longest, length);
    layer.forward_flop *= squares.share;
    layer.backward_data_flop *= squares.share;
    if (layer.backward_reads_output) continue;  // fused: no scores are kept
    for (std::int64_t* values : {&layer.inner_values, &layer.mask_values})
      *values = std::llround(static_cast<double>(*values) * squares.share);
  }
  if (!(longest > 0))
    throw place_.error("network '" + model.name +
                       "' has no attention, so the lengths of sequences change nothing; leave this out");
  return model;
}

double PackedLengths::slowest(double replicas, double samples) const {
  return 1 + cv_ / std::sqrt(samples) * expected_maximum(static_cast<std::int64_t>(replicas));
}

}  // namespace epocast
