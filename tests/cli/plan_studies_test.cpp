// A plan is what simulating everything would say, for a fifth of the simulations at most: studies of five hundred
// scenarios and more, each of another kind.

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::plan_studies_test {

using namespace epocast::test;

namespace {

/// What a plan is asked, and which column its answer minimises.
struct Question {
  std::string study;
  std::vector<std::string> options;
  std::string column;
  double deadline = std::numeric_limits<double>::infinity();  ///< s, as in the options
  bool fits = false;                                          ///< likewise
};

/// The least value of all rows that meet the conditions.
double exhaustive(const Question& question, const TemporaryFolder& folder, std::size_t& scenarios) {
  run_program({"sweep", "study.yaml", "--store", "all.sqlite"}, folder.path());  // scenarios that cannot be are rows
  const auto rows = nlohmann::json::parse(run_good({"results", "all.sqlite", "--format", "json"}, folder).out);
  scenarios = rows.size();
  double least = std::numeric_limits<double>::infinity();
  for (const nlohmann::json& row : rows) {
    if (row.at(question.column).is_null() || row.at("total_s") > question.deadline) continue;
    if (question.fits && row.at("fits_memory") != true) continue;
    least = std::min(least, row.at(question.column).get<double>());
  }
  return least;
}

void answers(const Question& question) {
  const TemporaryFolder folder;
  folder.write("study.yaml", question.study);
  std::size_t scenarios = 0;
  const double least = exhaustive(question, folder, scenarios);
  std::vector<std::string> plan{"plan", "study.yaml", "--format", "json", "--store", "plan.sqlite"};
  plan.insert(plan.end(), question.options.begin(), question.options.end());
  const auto ranking = nlohmann::json::parse(run_good(plan, folder).out);
  const auto simulated = nlohmann::json::parse(run_good({"results", "plan.sqlite", "--format", "json"}, folder).out);
  const double share = static_cast<double>(simulated.size()) / static_cast<double>(scenarios);
  WARN(question.study.substr(0, question.study.find('\n'))
       << ": " << simulated.size() << " of " << scenarios << " simulated, " << 100 * share << " %, best "
       << question.column << " " << ranking.at(0).at(question.column) << ", of all " << least);
  CHECK(scenarios >= 500);
  CHECK(ranking.at(0).at(question.column) == least);
  CHECK(share <= 0.2);
}

std::string language_model(const std::string& name, const std::string& model, const std::string& tokens,
                           const std::string& batch, const std::string& precision) {
  return "study: " + name + "\nmodel: " + model + "\ndataset: {tokens: " + tokens + "}\nbatch: {global: " + batch +
         "}\nprecision: " + precision +
         "\noptimizer: adam\n"
         "strategy: {mesh: {pipeline: 1, data: rest, tensor: 1}, schedule: {name: 1f1b, micro_batches: 4}}\n";
}

std::string cluster(const std::string& name, int nodes, const std::string& kind, int inside, int card, int price) {
  return "      - {cluster: " + name + ", nodes: " + std::to_string(nodes) + ", devices: {kind: " + kind +
         ", per_node: 8}, inside: {rate: " + std::to_string(inside) +
         " GB/s, latency: 3.4 us}, cards: {per_node: 8, rate: " + std::to_string(card) +
         " Gb/s, latency: 14 us}, price: {node_hour: " + std::to_string(price) + " $}}\n";
}

}  // namespace

TEST_CASE("a plan of asynchronous training with noise") {
  answers({.study = "study: asynchronous\nmodel: lenet\ndataset: {samples: 60000, epochs: 20}\n"
                    "noise: {compute_cv: 0.1, seed: 1}\n"
                    "strategy: {name: parameter_server, mode: async, servers: 1, granularity: model}\n"
                    "sweep:\n"
                    "  zip: {platform: [skylake_10gbe, skylake_opa], price.node_hour: [0.5 $, 0.8 $]}\n"
                    "  workers: [1, 2, 3, 4, 6, 8]\n  strategy.servers: [1, 2, 4]\n"
                    "  batch.per_worker: [2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024]\n",
           .options = {"--minimise", "cost", "--under", "60 s"},
           .column = "cost",
           .deadline = 60});
}

TEST_CASE("a plan of a language model on three clusters, with price and deadline") {
  answers({.study = language_model("clusters", "gpt3_760m", "20e9", "128", "bf16") +
                    "compute: {cost_model: roofline, efficiency: 0.5}\n"
                    "sweep:\n  zip:\n    workers: [16, 16, 32]\n    platform:\n" +
                    cluster("h100", 2, "h100_sxm5", 370, 400, 20) + cluster("h200", 2, "h200_sxm5", 370, 400, 25) +
                    cluster("a100", 4, "a100_sxm4_80gb", 240, 200, 13) +
                    "  strategy.mesh.pipeline: [1, 2, 4]\n  strategy.mesh.tensor: [1, 2, 4]\n"
                    "  strategy.schedule.micro_batches: [1, 2, 4, 8, 16]\n"
                    "  strategy.synchronisation: [all_reduce, {name: sharded, stage: 1}]\n"
                    "  memory.recompute: [none, full]\n",
           .options = {"--minimise", "cost", "--under", "5 h", "--fits"},
           .column = "cost",
           .deadline = 5 * 3600,
           .fits = true});
}

TEST_CASE("a plan of what trains ResNet-50 cheapest in a day") {
  answers({.study =
               "study: deadline\nmodel: resnet50\ndataset: {epochs: 90}\nsweep:\n"
               "  zip:\n"
               "    platform: [{name: p4d, nodes: 2, price: {node_hour: 32 $}}, {name: a100_roce, nodes: 2, price: "
               "{node_hour: 20 $}}, {name: v100_hgx_cloud, nodes: 2, price: {node_hour: 12 $}}]\n"
               "    precision: [bf16, bf16, fp16]\n"
               "  workers: [1, 2, 4, 8, 16]\n  batch.global: [64, 128, 256, 512, 1024, 2048]\n"
               "  strategy: [data_parallel, zero1, fsdp, gossip, {name: parameter_server, mode: sync}, {name: "
               "model_averaging, period: 4}]\n",
           .options = {"--minimise", "cost", "--under", "1 d"},
           .column = "cost",
           .deadline = 86400});
}

TEST_CASE("a plan that memory rules most of out", "[long]") {
  answers({.study = language_model("memory", "gpt3_1300m", "1e9", "64", "fp16") +
                    "workers: 16\nplatform: {cluster: small_devices, nodes: 2, devices: {kind: v100_sxm2_16gb, "
                    "per_node: 8}, inside: {rate: 100 GB/s, latency: 3 us}, cards: {per_node: 4, rate: 100 Gb/s, "
                    "latency: 5 us}}\n"
                    "sweep:\n  strategy.mesh.pipeline: [1, 2, 4, 8]\n  strategy.mesh.tensor: [1, 2, 4, 8]\n"
                    "  strategy.schedule.micro_batches: [1, 2, 4, 8, 16, 32]\n"
                    "  strategy.synchronisation: [all_reduce, {name: sharded, stage: 1}, {name: sharded, stage: 3}]\n"
                    "  memory.recompute: [none, selective, full]\n"
                    "  where: [strategy.mesh.pipeline * strategy.mesh.tensor <= workers, 64 * strategy.mesh.pipeline * "
                    "strategy.mesh.tensor % (workers * strategy.schedule.micro_batches) = 0]\n",
           .options = {"--minimise", "time", "--fits"},
           .column = "total_s",
           .fits = true});
}

TEST_CASE("a plan of the least energy for BERT in a day", "[long]") {
  answers({.study =
               "study: energy\nplatform: dgx_a100\nmodel: bert_large\nworkers: 8\ndataset: {samples: 10000000}\n"
               "precision: bf16\noptimizer: adam\nbatch: {global: 256}\n"
               "power: {device: {idle: 60 W, busy: 400 W}, node: 2 kW, overhead: 1.2}\n"
               "strategy: {mesh: {pipeline: 1, data: rest, tensor: 1}, schedule: {name: 1f1b, micro_batches: 1}}\n"
               "sweep:\n  workers: [1, 2, 4, 8]\n  strategy.mesh.pipeline: [1, 2, 4]\n"
               "  strategy.mesh.tensor: [1, 2, 4]\n  strategy.schedule.micro_batches: [1, 2, 4, 8, 16, 32]\n"
               "  strategy.schedule.name: [1f1b, gpipe]\n  memory.recompute: [none, selective, full]\n"
               "  where: [strategy.mesh.pipeline * strategy.mesh.tensor <= workers, 256 * strategy.mesh.pipeline * "
               "strategy.mesh.tensor % (workers * strategy.schedule.micro_batches) = 0]\n",
           .options = {"--minimise", "energy", "--under", "1 d", "--fits"},
           .column = "energy_j",
           .deadline = 86400,
           .fits = true});
}

TEST_CASE("the buyer's question has the answer that simulating everything has", "[long]") {
  answers({.study = read_file(std::string(EPOCAST_SOURCE_DIR) + "/experiments/studies/buyers_question.yaml"),
           .options = {"--minimise", "cost", "--under", "5 d", "--fits"},
           .column = "cost",
           .deadline = 5 * 86400,
           .fits = true});
}

}  // namespace epocast::plan_studies_test
