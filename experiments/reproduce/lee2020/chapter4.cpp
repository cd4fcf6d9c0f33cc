// Inputs: the two speedups of VGG-16 (see chapter4.yaml). Those of ResNet-50 are predicted.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "experiments/reproduce/lee2020/scaling.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::lee2020 {
namespace {

/// Percent.
constexpr double kBound = 15;
constexpr double kCores = 32;      // of a node; speedups count them
constexpr double kVisible = 0.01;  // of the iteration: what figure 4.9, with a linear axis, can show

std::vector<Setting> settings() {
  std::vector<Setting> out;
  for (const auto& [name, model] : {std::pair("VGG-16", "vgg16"), std::pair("ResNet-50", "resnet50")})
    for (const auto& [strategy, gradients] : {std::pair("allreduce", "all_reduce"), std::pair("pcnn", "pcnn")})
      for (const auto& [suffix, overlap] : {std::pair("", "next_forward"), std::pair("_no_overlap", "none")})
        out.push_back({std::string(name) + " " + strategy + suffix,
                       {{"model", model},
                        {"strategy", fmt::format("{{name: layerwise_data_parallel, gradients: {}, overlap: {}}}",
                                                 gradients, overlap)}}});
  return out;
}

std::vector<TargetRow> run(const TargetContext& context) {
  const std::filesystem::path folder = data_directory() / "experiments" / "reproduce" / "lee2020";
  const PublishedTable published = PublishedTable::load(folder / "chapter4.csv", {"model", "strategy"});
  std::map<std::string, Curve> curves = run_curves(folder / "chapter4.yaml", settings(), context);

  std::vector<TargetRow> rows;
  const auto best = [&](const std::string& setting) { return kCores * best_speedup(curves[setting]); };
  const auto speedup = [&](const std::string& model, const std::string& strategy, Role role, std::string note) {
    const double value = published.value({model, strategy}, "speedup");
    rows.push_back({model + " " + strategy, "speedup", "x", value, best(model + " " + strategy), role,
                    role == Role::input ? 0.01 * value : 0, std::move(note)});
  };
  speedup("VGG-16", "pcnn", Role::input, "fixes network.efficiency; comes back to 1 %");
  speedup("VGG-16", "allreduce", Role::input, "fixes collective.reduction_rate; comes back to 1 %");
  speedup("ResNet-50", "pcnn", Role::predicted, "");
  speedup("ResNet-50", "allreduce", Role::predicted, "");

  const auto visible = [&](const std::string& model, const std::string& strategy) {
    return kCores * first_visible(curves[model + " " + strategy],
                                  [](const ScenarioResult& point) { return kVisible * point.iteration_s; });
  };
  const std::string first = "first cores with visible communication";
  for (const auto& [model, strategy] :
       {std::pair("VGG-16", "pcnn"), std::pair("VGG-16", "allreduce"), std::pair("ResNet-50", "allreduce")}) {
    const double value = published.value({model, strategy}, first);
    rows.push_back(within_factor_of_two(std::string(model) + " " + strategy, first, "cores", value,
                                        visible(model, strategy), "1 % of the iteration"));
  }
  const double hidden = published.value({"ResNet-50", "pcnn"}, "hides communication up to");
  rows.push_back(within_factor_of_two("ResNet-50 pcnn", "hides communication up to", "cores", hidden,
                                      visible("ResNet-50", "pcnn") / 2, "half of the first visible"));
  for (const std::string model : {"VGG-16", "ResNet-50"}) {
    rows.push_back(
        ordering(model, "pcnn scales better than allreduce", best(model + " pcnn") > best(model + " allreduce")));
    for (const std::string strategy : {" pcnn", " allreduce"})
      rows.push_back(ordering(model + strategy, "overlap scales further",
                              best(model + strategy) > best(model + strategy + "_no_overlap")));
  }
  rows.push_back(
      ordering("VGG-16, ResNet-50", "pcnn gains more for VGG-16",
               best("VGG-16 pcnn") / best("VGG-16 allreduce") > best("ResNet-50 pcnn") / best("ResNet-50 allreduce")));

  const std::filesystem::path models = data_directory() / "workloads" / "models";
  for (const auto& [name, file, tolerance] :
       {std::tuple("VGG-16", "vgg16", 0.5), std::tuple("ResNet-50", "resnet50", 0.1)}) {
    const Model model = load_model(models / (std::string(file) + ".yaml"));
    rows.push_back(fact(name, "parameters", "million", published.value({name, "all"}, "parameters"),
                        1e-6 * static_cast<double>(model.parameter_count()), tolerance, "printed rounded"));
  }
  return rows;
}

}  // namespace

Target chapter4() {
  return {"lee2020", "chapter4", "speedups of VGG-16 and ResNet-50 with allreduce and pcnn, up to 8192 cores", kBound,
          run};
}

}  // namespace epocast::lee2020
