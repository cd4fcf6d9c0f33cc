// One input: DP's 19.92 of section 3.4 (see cori_haswell.csv). Everything else is predicted or stated. Speedups are the
// maxima of the curves, as the thesis names them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/reproduce/lee2020/scaling.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::lee2020 {
namespace {

constexpr double kChapter3Bound = 15;  // percent; known to be missed, see below
constexpr std::int64_t kNodes = 128;
constexpr double kMiB = 1024.0 * 1024;

std::string two_chunks(int k, int f) {
  return fmt::format("{{name: two_chunk_data_parallel, k: {}, f: {}, communication_cores: 1}}", k, f);
}

std::vector<Setting> chapter3_settings() {
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
    rows.push_back(printed(name, "parameters", "million", published.value({name}, "parameters"),
                           1e-6 * static_cast<double>(model.parameter_count()), 0.5));
    if (std::string(name) != "VGG-A") continue;
    const auto fc1 = std::find_if(model.layers.begin(), model.layers.end(),
                                  [](const Layer& layer) { return layer.kind == LayerKind::fully_connected; });
    const auto inputs = static_cast<double>(fc1->input_values), outputs = static_cast<double>(fc1->output.values());
    rows.push_back(
        printed("VGG-A FC1", "weights", "MiB", published.value({"VGG-A FC1"}, "weights"), 4 * inputs * outputs / kMiB));
    rows.push_back(printed("VGG-A FC1", "gathered activations and errors", "MiB",
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

/// How long the backward passes of the curve's last point take without waiting [s].
double backpropagation(const std::filesystem::path& study, const TargetContext& context) {
  const std::vector<Scenario> scenarios = load_study(study, machine(1)).scenarios;
  const ScenarioSetup setup = read_scenario(scenarios.back(), context.registries);
  const StrategyContext last = setup.context(setup.phases.front());
  DeviceTime sum;
  for (const LayerTrace& layer : last.trace(last.worker_batch()).layers) sum += layer.times.backward();
  return sum.longest().value;
}

std::vector<TargetRow> run_chapter3(const TargetContext& context) {
  const std::filesystem::path folder = data_directory() / "experiments" / "reproduce" / "lee2020";
  const PublishedTable published = PublishedTable::load(folder / "chapter3.csv", {"setting"});
  std::map<std::string, Curve> curves = run_curves(folder / "chapter3.yaml", chapter3_settings(), machine(1), context);
  const Curve& parallel_cnn = curves["parallel CNN"];

  std::vector<TargetRow> rows;
  const auto speedup = [&](const std::string& setting) -> TargetRow& {
    return rows.emplace_back(TargetRow{.row = setting,
                                       .quantity = "speedup",
                                       .unit = "x",
                                       .published = published.value({setting}, "speedup"),
                                       .simulated = best_speedup(curves[setting])});
  };
  TargetRow& input = speedup("DP");
  input.role = Role::input;
  input.tolerance = 0.1;
  input.note = "fixes what one core moves in memory";
  for (const std::string setting : {"parallel CNN", "batch 128", "batch 512", "VGG-128", "VGG-256", "VGG-512"}) {
    TargetRow& row = speedup(setting);
    row.seen = true;  // how loops are parallel was decided with these errors in view
    row.trivial = kNodes;
    if (setting == "batch 128")
      row.note = fmt::format("on 64 nodes at least {:.1f}, by what 256 images reach on 128",
                             published.value({"parallel CNN"}, "speedup") / 2);
  }

  curves["f=2"] = curves["k=9"] = parallel_cnn;
  int best_f = 0, best_k = 0;
  double fastest = 0, most_hidden = 0;
  for (const int f : {0, 1, 2, 3})
    if (const double s = best_speedup(curves[fmt::format("f={}", f)]); s > fastest) fastest = s, best_f = f;
  for (const int k : {3, 6, 9, 12})
    if (const double r = *on(curves[fmt::format("k={}", k)], kNodes).overlap_ratio; r > most_hidden)
      most_hidden = r, best_k = k;
  rows.push_back(stated("all f", "best f", "layers", published.value({"all f"}, "best f"), best_f));
  rows.push_back(stated("all k", "best k", "layers", published.value({"all k"}, "best k"), best_k, 1,
                        "by overlap ratio on 128 nodes"));
  const std::string last = "last nodes that scale";
  rows.push_back(stated("DP+Overlap", last, "nodes", published.value({"DP+Overlap"}, last),
                        last_scaling(curves["DP+Overlap"], 1.2), 1, "a doubling that gains a fifth"));
  const std::string first = "first nodes with visible communication";
  rows.push_back(stated("parallel CNN", first, "nodes", published.value({"parallel CNN"}, first),
                        first_visible(parallel_cnn, [](const ScenarioResult&) { return 1e-5; }), 2,
                        "10 us or more: figure 3.6 is logarithmic"));
  const std::string at_last = "parallel CNN on 128 nodes", blocked = "blocked time / backpropagation time";
  rows.push_back(stated(at_last, blocked, "ratio", published.value({at_last}, blocked),
                        on(parallel_cnn, kNodes).exposed_comm_s / backpropagation(folder / "chapter3.yaml", context),
                        2));
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
  return {.paper = "lee2020",
          .table = "chapter3",
          .description = "speedups of VGG-A and its variants with two overlapped gradient chunks, up to 128 nodes",
          .mape_bound = kChapter3Bound,
          .run = run_chapter3,
          .trivial_rule = "linear scaling",
          .known_misses = {{kMape, 23.6,
                            "batch 128; its 17.82 contradicts the 62.97 of batch 256, which imply 31.5 on half the "
                            "nodes"},
                           {"parallel CNN on 128 nodes: blocked time / backpropagation time", 99.9,
                            "our messages are faster and our kernels for two images slower than theirs"}}};
}

}  // namespace epocast::lee2020
