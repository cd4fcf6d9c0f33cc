// A.4: what 21,841 classes instead of 1,000 add to what is sent in a step.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/reproduce/deepa/cases.hpp"
#include "experiments/reproduce/deepa/targets.hpp"
#include "experiments/reproduce/published_table.hpp"

namespace epocast::deepa {
namespace {

constexpr int kClasses22k = 21841;
constexpr double kGib = 1024.0 * 1024 * 1024, kMb = 1e6;

/// What the last layer reads.
double width_of(const Network& network) {
  double width = 0;
  for (const Layer& layer : load_network(network).layers)
    if (layer.kind == LayerKind::fully_connected) width = static_cast<double>(layer.input_values);
  return width;
}

std::vector<TargetRow> run_22k(const TargetContext& context) {
  const PublishedTable published = PublishedTable::load(data_folder() / "imagenet22k.csv", {"parallelism"});
  std::vector<TargetRow> rows;
  std::vector<double> more, more_of_deepa, reduction;
  for (const Network& network : networks()) {
    const Case few{network, k80()}, all{network, k80(), 32, kClasses22k};
    const auto costs = [&](const Case& of, TransferRule rule) { return EquationOne(of, rule, context); };
    const EquationOne before = costs(few, TransferRule::paper), after = costs(all, TransferRule::paper);
    const EquationOne before_boxes = costs(few, TransferRule::boxes), after_boxes = costs(all, TransferRule::boxes);
    const double added = after.bytes(after.image()) - before.bytes(before.image());
    // 2 n copies of the weights that are new; our count has their biases, too.
    const double formula = 2.0 * k80().workers * (kClasses22k - few.classes) * width_of(network) * 4;
    constexpr double kShare = 1e-3;
    rows.push_back({.row = few.name(),
                    .quantity = "more data for image parallelism",
                    .unit = "GiB",
                    .published = formula / kGib,
                    .simulated = added / kGib,
                    .role = Role::exact,
                    .tolerance = kShare * formula / kGib,
                    .note = "2 n (21,841 - 1,000) x width x 4 bytes; ours has biases"});
    rows.push_back(ours(few.name(), "more data for image parallelism, replayed", "GiB",
                        (after_boxes.bytes(after.image()) - before_boxes.bytes(before.image())) / kGib,
                        "2 (n - 1) copies"));
    more.push_back(added / kGib);
    rows.push_back(ours(few.name(), "more data for DeePa, replayed", "MB",
                        (after_boxes.bytes(after_boxes.cheapest()) - before_boxes.bytes(before_boxes.cheapest())) / kMb,
                        "found with boxes"));
    rows.push_back(ours(few.name(), "reduction of data by DeePa, replayed", "x",
                        after_boxes.bytes(after.image()) / after_boxes.bytes(after_boxes.cheapest()),
                        network.model == inception_v3().model
                            ? fmt::format("found with boxes; {} stated, left out: DeePa's choice is in figure 11 only",
                                          published.value({"DeePa over image"}, "least reduction of data"))
                            : "found with boxes"));
    const auto stated_before = stated_choice(few, before), stated_after = stated_choice(all, after);
    if (!stated_before) continue;
    more_of_deepa.push_back((after.bytes(*stated_after) - before.bytes(*stated_before)) / kMb);
    reduction.push_back(after.bytes(after.image()) / after.bytes(*stated_after));
    rows.push_back(ours(few.name(), "reduction of data by DeePa", "x", reduction.back(), "by the paper's count"));
  }
  const auto add = [&](const std::string& parallelism, const std::string& quantity, const std::string& unit,
                       double simulated, Role role, double factor) {
    rows.push_back({.row = "16 K80, " + parallelism,
                    .quantity = quantity,
                    .unit = unit,
                    .published = published.value({parallelism}, quantity),
                    .simulated = simulated,
                    .role = role,
                    .note = "by the paper's count",
                    .factor = factor,
                    .seen = role == Role::predicted});
  };
  constexpr double kPrinted = 1.05;  // in GiB, though GB is printed
  add("image", "least more data", "GiB", *std::ranges::min_element(more), Role::stated, kPrinted);
  add("image", "most more data", "GiB", *std::ranges::max_element(more), Role::stated, kPrinted);
  add("DeePa", "more data", "MB", *std::ranges::max_element(more_of_deepa), Role::predicted, 1);
  add("DeePa over image", "most reduction of data", "x", *std::ranges::max_element(reduction), Role::predicted, 1);
  return rows;
}

}  // namespace

Target imagenet22k() {
  return {.paper = "deepa",
          .table = "imagenet22k",
          .description = "what 21,841 classes add to the data sent in a step, by the paper's count and replayed",
          .mape_bound = {},
          .run = run_22k};
}

}  // namespace epocast::deepa
