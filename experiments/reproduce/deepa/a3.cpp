// A.3: what VGG-16 sends on four P100, by named counts and by the replay, and how long it takes.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "experiments/reproduce/deepa/cases.hpp"
#include "experiments/reproduce/deepa/targets.hpp"
#include "experiments/reproduce/published_table.hpp"

namespace epocast::deepa {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
const char* const kFullyConnected[] = {"fc6", "fc7", "fc8"};
const char* const kWhy =
    "over links of their own, four devices take in what they lack as fast as two, and compute in half the time";
const std::string kFound = "found with boxes";

std::vector<TargetRow> run_a3(const TargetContext& context) {
  const PublishedTable published = PublishedTable::load(data_folder() / "a3.csv", {"parallelism"});
  const Case of{vgg16(), p100_node()};
  const EquationOne paper(of, TransferRule::paper, context), boxes(of, TransferRule::boxes, context);
  const EquationOne::Choice image = paper.image(), stated = *stated_choice(of, paper);
  Replays replays;
  replays.add("image", of, deepa_with(paper.yaml(image)));
  replays.add("DeePa", of, deepa_with(paper.yaml(stated)));
  replays.add(kFound, of, deepa_with(boxes.yaml(boxes.cheapest())));
  replays.run(context);

  std::vector<TargetRow> rows;
  const auto count = [&](const std::string& parallelism, const std::string& unit, double value, double factor,
                         const std::string& note) {
    rows.push_back({.row = parallelism,
                    .quantity = "data sent",
                    .unit = unit,
                    .published = published.value({parallelism}, "data sent"),
                    .simulated = value,
                    .role = Role::stated,
                    .note = note,
                    .factor = factor});
  };
  // One digit is printed: 3.5 to 4.5.
  count("image", "GiB", paper.bytes(image) / kGiB, 4.5 / 4, "2 n p 4 bytes");
  // The paper's count of the convolutions, and the inputs of the fully connected layers once.
  const Model model = load_network(of.network);
  double convolutions = 0, inputs = 0;
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::convolution)
      for (const ParameterTensor& tensor : layer.parameters) convolutions += static_cast<double>(tensor.values);
    if (layer.kind == LayerKind::fully_connected) inputs += static_cast<double>(layer.input_values);
  }
  const double n = of.machine.workers, batch = n * of.per_worker;
  count("DeePa", "MB", 4 * (2 * n * convolutions + batch * inputs) / 1e6, 1.005,
        "2 n copies of the convolutions, one of the inputs of fc6, fc7 and fc8");
  const auto replayed = [&](const std::string& row, const EquationOne::Choice& choice) {
    rows.push_back(ours(row, "data sent, the paper's count", "MB", paper.bytes(choice) / 1e6, "2 n copies"));
    rows.push_back(ours(row, "data sent, as the search counts", "MB", boxes.bytes(choice) / 1e6,
                        "2 (n - 1) copies, and boxes that devices lack"));
    rows.push_back(
        ours(row, "data sent, replayed", "MB", replays.at(row).comm_bytes_per_iteration / 1e6, "every message"));
    rows.push_back(ours(row, "iteration by equation 1", "s", paper.seconds(choice), "the paper's rules"));
  };
  replayed("image", image);
  replayed("DeePa", stated);
  replayed(kFound, boxes.cheapest());
  for (const std::string parallelism : {"image", "DeePa"})
    rows.push_back({.row = parallelism,
                    .quantity = "iteration",
                    .unit = "s",
                    .published = published.value({parallelism}, "iteration"),
                    .simulated = replays.seconds(parallelism),
                    .role = Role::predicted,
                    .seen = true});
  rows.push_back(ours(kFound, "iteration", "s", replays.seconds(kFound), "replayed"));
  for (const char* op : kFullyConnected) {
    const Degrees found = boxes.degrees(boxes.cheapest(), op);
    rows.push_back({.row = kFound,
                    .quantity = fmt::format("workers of {}", op),
                    .unit = "workers",
                    .published = published.value({"DeePa"}, "workers of fully connected layers"),
                    .simulated = static_cast<double>(found.product()),
                    .role = Role::stated,
                    .note = found.text()});
  }
  return rows;
}

}  // namespace

Target a3() {
  return {.paper = "deepa",
          .table = "a3",
          .description =
              "VGG-16 on four P100, image parallelism and fully connected layers on two devices: bytes by "
              "named counts, bytes and times replayed",
          .mape_bound = {},
          .run = run_a3,
          .known_misses = {{kFound + ": workers of fc6", 100, kWhy},
                           {kFound + ": workers of fc7", 100, kWhy},
                           {kFound + ": workers of fc8", 100, kWhy}}};
}

}  // namespace epocast::deepa
