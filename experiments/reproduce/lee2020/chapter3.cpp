// One input: DP's 19.92 of section 3.4 (see chapter3.yaml). Everything else is predicted.
//
// On how many nodes 128 images reach 17.82 is not said; the other speedups leave one power of two, 32. On 16 nodes
// it would be superlinear. On 64 a node has 2 images, as many as with 256 images on 128 nodes, and exchanges no more;
// on 128 it has fewer. So 128 images take at most the T(256)/62.97 of those, and reach at least half of 62.97, as half
// the images take one node at least half as long. On 32 nodes, by the same token, they reach at least a quarter of the
// 77.97 of 512 images on 128 nodes: 19.49, which 17.82 misses, but by 9 % only.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/reproduce/lee2020/scaling.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::lee2020 {
namespace {

constexpr double kBound = 15;  // percent
constexpr std::int64_t kNodes = 128;
constexpr std::int64_t kNodesOfBatch128 = 32;
constexpr double kMiB = 1024.0 * 1024;

std::string two_chunks(int k, int f) {
  return fmt::format("{{name: two_chunk_data_parallel, k: {}, f: {}, communication_cores: 1}}", k, f);
}

std::vector<Setting> settings() {
  std::vector<Setting> out{{"parallel CNN", {}},
                           {"DP", {{"strategy", "{name: data_parallel, granularity: model, overlap: false}"}}},
                           {"DP+Overlap", {{"strategy", "{name: layerwise_data_parallel, communication_cores: 1}"}}},
                           {"batch 128", {{"batch.global", "128"}}},
                           {"batch 512", {{"batch.global", "512"}}}};
  for (const std::string width : {"128", "256", "512"}) out.push_back({"VGG-" + width, {{"model", "vgg_" + width}}});
  for (const int f : {0, 1, 3}) out.push_back({fmt::format("f={}", f), {{"strategy", two_chunks(9, f)}}});
  for (const int k : {3, 6, 12}) out.push_back({fmt::format("k={}", k), {{"strategy", two_chunks(k, 2)}}});
  return out;
}

/// Counts that follow from the models.
std::vector<TargetRow> counts(const PublishedTable& published) {
  const std::filesystem::path models = data_directory() / "workloads" / "models";
  std::vector<TargetRow> rows;
  for (const auto& [name, file] : {std::pair("VGG-A", "vgg_a"), std::pair("VGG-128", "vgg_128"),
                                   std::pair("VGG-256", "vgg_256"), std::pair("VGG-512", "vgg_512")}) {
    const Model model = load_model(models / (std::string(file) + ".yaml"));
    rows.push_back(fact(name, "parameters", "million", published.value({name}, "parameters"),
                        1e-6 * static_cast<double>(model.parameter_count()), 0.5, "printed as a whole number"));
    if (std::string(name) != "VGG-A") continue;
    const auto fc1 = std::find_if(model.layers.begin(), model.layers.end(),
                                  [](const Layer& layer) { return layer.kind == LayerKind::fully_connected; });
    const auto inputs = static_cast<double>(fc1->input_values), outputs = static_cast<double>(fc1->output.values());
    rows.push_back(
        fact("VGG-A FC1", "weights", "MiB", published.value({"VGG-A FC1"}, "weights"), 4 * inputs * outputs / kMiB));
    rows.push_back(fact("VGG-A FC1", "gathered activations and errors", "MiB",
                        published.value({"VGG-A FC1"}, "gathered activations and errors"),
                        4 * 256 * (inputs + outputs) / kMiB));
    double convolutions = 0;
    for (const Layer& layer : model.layers)
      if (layer.kind == LayerKind::convolution) convolutions += static_cast<double>(layer.parameters[0].values);
    rows.push_back({"VGG-A convolutions", "weights", "million", std::nullopt, 1e-6 * convolutions, Role::exact, 0,
                    "corrected; the thesis prints 5"});
  }
  return rows;
}

std::vector<TargetRow> run(const TargetContext& context) {
  const std::filesystem::path folder = data_directory() / "experiments" / "reproduce" / "lee2020";
  const PublishedTable published = PublishedTable::load(folder / "chapter3.csv", {"setting"});
  std::map<std::string, Curve> curves = run_curves(folder / "chapter3.yaml", settings(), context);
  const Curve& parallel_cnn = curves["parallel CNN"];

  std::vector<TargetRow> rows;
  const auto speedup = [&](const std::string& setting, double simulated, Role role, double tolerance,
                           std::string note) {
    rows.push_back(
        {setting, "speedup", "x", published.value({setting}, "speedup"), simulated, role, tolerance, std::move(note)});
  };
  speedup("DP", best_speedup(curves["DP"]), Role::input, 0.1, "fixes what one core moves in memory");
  speedup("batch 128", *on(curves["batch 128"], kNodesOfBatch128).speedup, Role::predicted, 0,
          fmt::format("{} nodes are implied; there by batch 512 at least {:.2f}", kNodesOfBatch128,
                      published.value({"batch 512"}, "speedup") / 4));
  for (const std::string setting : {"parallel CNN", "batch 512", "VGG-128", "VGG-256", "VGG-512"})
    speedup(setting, best_speedup(curves[setting]), Role::predicted, 0, "");

  curves["f=2"] = curves["k=9"] = parallel_cnn;
  int best_f = 0, best_k = 0;
  double fastest = 0, most_hidden = 0;
  for (const int f : {0, 1, 2, 3})
    if (const double s = best_speedup(curves[fmt::format("f={}", f)]); s > fastest) fastest = s, best_f = f;
  for (const int k : {3, 6, 9, 12})
    if (const double r = *on(curves[fmt::format("k={}", k)], kNodes).overlap_ratio; r > most_hidden)
      most_hidden = r, best_k = k;
  rows.push_back(fact("all f", "best f", "layers", published.value({"all f"}, "best f"), best_f));
  rows.push_back(fact("all k", "best k", "layers", published.value({"all k"}, "best k"), best_k, 0,
                      "by overlap ratio on 128 nodes"));
  rows.push_back(fact("DP+Overlap", "last nodes that scale", "nodes",
                      published.value({"DP+Overlap"}, "last nodes that scale"), last_scaling(curves["DP+Overlap"], 1.2),
                      0, "a doubling that gains a fifth"));
  const double first = published.value({"parallel CNN"}, "first nodes with visible communication");
  rows.push_back(within_factor_of_two("parallel CNN", "first nodes with visible communication", "nodes", first,
                                      first_visible(parallel_cnn, [](const ScenarioResult&) { return 1e-5; }),
                                      "10 us or more: figure 3.6 is logarithmic"));
  const auto at_end = [&](const std::string& setting) { return *on(curves[setting], kNodes).speedup; };
  rows.push_back(
      ordering("batch 128, 256, 512", "a larger batch scales further",
               at_end("batch 128") < at_end("parallel CNN") && at_end("parallel CNN") < at_end("batch 512")));
  rows.push_back(ordering("VGG-128, -256, -512", "a wider network scales further",
                          at_end("VGG-128") < at_end("VGG-256") && at_end("VGG-256") < at_end("VGG-512")));
  rows.push_back(ordering("DP, DP+Overlap, parallel CNN", "parallel CNN scales best, DP worst",
                          at_end("DP") < at_end("DP+Overlap") && at_end("DP+Overlap") < at_end("parallel CNN")));
  for (TargetRow& row : counts(published)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

Target chapter3() {
  return {"lee2020", "chapter3",
          "speedups of VGG-A and its variants with two overlapped gradient chunks, up to 128 nodes", kBound, run};
}

}  // namespace epocast::lee2020
