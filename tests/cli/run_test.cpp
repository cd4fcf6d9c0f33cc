// `epocast run` as its users meet it: formats that agree, options, failures that stay where they are.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/csv.hpp"
#include "tests/cli/program.hpp"
#include "tests/cli/small_study.hpp"
#include "tests/cli/text.hpp"

namespace epocast::run_test {

using namespace epocast::test;
using nlohmann::ordered_json;

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;
const std::string kColumns =
    "workers,global_batch,iteration_s,epoch_s,total_s,samples_per_s,speedup,efficiency,compute_s,comm_s,exposed_comm_s,"
    "overlap_ratio,comm_bytes_per_iteration,comm_bytes_per_epoch,max_link_utilization,bubble_fraction,peak_memory_"
    "bytes,"
    "fits_memory,mean_staleness,max_staleness,bound_s,limited_by,iterations_simulated,exact,stack,algorithm,"
    "tokens_per_s,mfu,hfu,cost,energy_j,co2_kg,goodput,warnings,loss,accuracy,time_to_target_s,epochs_to_target,"
    "iteration_low_s,iteration_high_s";

}  // namespace

TEST_CASE("a pipeline's batch may have fewer samples than it has devices") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "strategy: {name: pipeline}\n");
  const Csv csv = run_csv({"run", "study.yaml", "--set", "workers=3", "--set", "batch.global=2"}, folder);
  CHECK(csv.rows.at(0).at("global_batch") == "2");
  CHECK(number(csv, 0, "samples_per_s") * number(csv, 0, "iteration_s") == Approx(2));
  // Two micro-batches on three stages: (m + p - 1) slots of which each stage works in m. Stages are not equal and
  // messages take time, so more than this is idle.
  CHECK(number(csv, 0, "bubble_fraction") > 0.5);
  const ProgramRun odd =
      run_program({"run", "study.yaml", "--set", "workers=4", "--set", "strategy.stages=2", "--set", "batch.global=3"},
                  folder.path());
  CHECK(odd.exit_code == 2);
  CHECK(odd.err.find("a global batch of 3 cannot be divided over 2 replicas; nearest multiples: 2 and 4") !=
        std::string::npos);
}

TEST_CASE("a server of its own takes the time of updates off the workers, and no more of a measured step") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: anchored\nplatform: ideal_star_1024\nmodel: resnet20\ndataset: {samples: 60000}\n"
               "batch: {per_worker: 600}\ncompute: {step_time: {batch: 600, time: 10 s}}\n"
               "strategy: {name: parameter_server, mode: async, granularity: model}\n");
  double update = 0;
  for (const auto& row : read_csv(run_good({"trace", "study.yaml", "--format", "csv"}, folder).out).rows)
    update += std::stod(row.at("update_s"));
  CHECK(update > 0);
  // One worker and its server do what one device does, and send messages.
  const double one = number(run_csv({"run", "study.yaml"}, folder), 0, "iteration_s");
  CHECK(one >= 10 * (1 - 1e-12));
  CHECK(one < 10.1);
  const double alone =
      number(run_csv({"run", "study.yaml", "--set", "strategy={name: single}"}, folder), 0, "samples_per_s");
  CHECK(alone == Approx(60));
  for (const char* workers : {"2", "8"}) {
    const double many =
        number(run_csv({"run", "study.yaml", "--set", std::string("workers=") + workers}, folder), 0, "samples_per_s");
    CHECK(many > 0.99 * std::stod(workers) * alone);
    CHECK(many <= std::stod(workers) * alone * 10 / (10 - update) * (1 + 1e-9));
  }
}

TEST_CASE("asynchronous equal workers without noise lock in phase, and that is said") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "strategy: {name: downpour}\n");
  const auto warned = [&](std::vector<std::string> settings) {
    std::vector<std::string> arguments{"run", "study.yaml"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    const ProgramRun done = run_good(arguments, folder);
    return (done.out + done.err).find("noise: {compute_cv: 0.05, seeds: 5}") != std::string::npos;
  };
  CHECK(warned({}));
  CHECK_FALSE(warned({"noise.compute_cv=0.05"}));
  CHECK_FALSE(warned({"stragglers=[{worker: 1, slowdown: 1.5}]"}));
  CHECK_FALSE(warned({"workers=1"}));
  CHECK_FALSE(warned({"strategy={name: parameter_server, mode: sync}"}));
  CHECK_FALSE(warned({"compute.step_time={batch: 32, time: 10 s}"}));  // hardly ever meet
}

TEST_CASE("a strategy or cost model without parameters may be a word") {
  const TemporaryFolder folder;
  folder.write("long.yaml", kStudy + "strategy: {name: single}\ncompute: {cost_model: roofline}\n");
  folder.write("short.yaml", kStudy + "strategy: single\ncompute: roofline\n");
  CHECK(run_good({"run", "short.yaml", "--set", "workers=1", "--format", "csv"}, folder).out ==
        run_good({"run", "long.yaml", "--set", "workers=1", "--format", "csv"}, folder).out);
}

TEST_CASE("a result that cannot be true is not printed unflagged") {
  // Collectives of the closed form beside the transfers of a pipeline: the busiest link would carry more than it can.
  const TemporaryFolder folder;
  folder.write("star.xml", R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="star" routing="Full">
    <prop id="epocast.device_model" value="synthetic"/>
    <prop id="epocast.peak_rate" value="10 TFLOP/s"/>
    <prop id="epocast.memory" value="16 GB"/>
    <prop id="epocast.memory_bandwidth" value="500 GB/s"/>
    <cluster id="c" prefix="d" radical="0-3" suffix="" speed="10Tf" bw="125MBps" lat="10us" sharing_policy="SPLITDUPLEX"/>
  </zone>
</platform>
)");
  folder.write("study.yaml",
               "study: s\nplatform: star.xml\nmodel: resnet50\nworkers: 4\nbatch: {per_worker: 32}\n"
               "strategy: {name: pipeline, schedule: zb_h1, stages: 2, micro_batches: 4}\n"
               "collective: {algorithm: ring}\nsweep: {collective.level: [closed_form, auto]}\n");
  const ProgramRun run = run_program({"run", "study.yaml", "--format", "json"}, folder.path());
  REQUIRE(run.exit_code == 0);
  const ordered_json rows = ordered_json::parse(run.out);
  REQUIRE(rows.at(0).at("bound_s") > rows.at(0).at("iteration_s"));
  CHECK(rows.at(0).at("exact") == false);
  CHECK(rows.at(1).at("bound_s") <= rows.at(1).at("iteration_s"));
  CHECK(rows.at(1).at("exact") == true);
  const ProgramRun shown = run_program({"run", "study.yaml"}, folder.path());
  CHECK_THAT(shown.out + shown.err,
             Catch::Contains("impossible: link") && Catch::Contains("use collective.level: auto or flow"));
}

TEST_CASE("the shipped studies run, in formats by turns", "[studies]") {
  const TemporaryFolder folder;
  const std::vector<std::string> formats{"table", "markdown", "csv", "json",
                                         "jsonl"};  // of one study all are held together below
  std::size_t turn = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "experiments/studies")) {
    const std::string& format = formats[turn++ % formats.size()];
    CAPTURE(entry.path(), format);
    std::vector<std::string> command{"run", entry.path().string(), "--format", format};
    // Hundreds of scenarios, for `plan` to choose from: one of them.
    for (const char* large : {"buyers_question", "language_model_plan"})
      if (entry.path().stem() == large) command.insert(command.end(), {"--scenario", "100"});
    CHECK_FALSE(run_good(command, folder).out.empty());
  }
}

TEST_CASE("the columns are those of the contract, axes after the scenario and each once") {
  const TemporaryFolder folder;
  folder.write("plain.yaml", kStudy);
  folder.write("sweep.yaml", kStudy + "sweep: {strategy: [data_parallel]}\n");
  folder.write("both.yaml", kSweep);
  CHECK(run_csv({"run", "plain.yaml"}, folder).header == "study,scenario," + kColumns);
  CHECK(run_csv({"run", "sweep.yaml"}, folder).header == "study,scenario,strategy," + kColumns);
  CHECK(run_csv({"run", "both.yaml"}, folder).header ==
        "study,scenario,workers,batch.per_worker," + kColumns.substr(std::string("workers,").size()));
}

TEST_CASE("chosen columns, in all formats") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kSweep);
  const auto shown = [&](const std::string& format) {
    return run_good({"run", "study.yaml", "--columns", "workers, global_batch,mean_staleness", "--format", format},
                    folder)
        .out;
  };
  CHECK(shown("csv").starts_with("workers,global_batch,mean_staleness\n"));
  const std::vector<std::string> line = split(shown("csv"), '\n');
  REQUIRE(line.size() == 5);
  const std::string workers = line[1].substr(0, line[1].find(','));
  CHECK(shown("jsonl").starts_with("{\"workers\":" + workers + ",\"global_batch\":"));
  CHECK(ordered_json::parse(shown("json"))[0].size() == 3);
  CHECK(split(shown("markdown"), '\n')[0] == "| workers | global_batch | mean_staleness |");
  CHECK(split(shown("markdown"), '\n')[1] == "| --: | --: | --: |");
  CHECK(split(shown("table"), '\n')[0] == "  workers  global_batch  mean_staleness");
  const ProgramRun wrong = run_program({"run", "study.yaml", "--columns", "wrokers"}, folder.path());
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Catch::Contains("--columns: no column 'wrokers' (did you mean 'workers'?)"));
}

TEST_CASE("results as Markdown") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kSweep);
  const std::vector<std::string> lines =
      split(run_good({"run", "study.yaml", "--format", "markdown"}, folder).out, '\n');
  CHECK(lines[0].starts_with("### "));
  CHECK(lines[2].starts_with("| batch.per_worker | workers | batch | iteration | "));
  CHECK(lines[3].starts_with("| --: | --: | --: | --: | "));
  CHECK(std::ranges::count(lines, "Limited by:") == 1);
  CHECK(std::ranges::count_if(lines, [](const auto& line) { return line.starts_with("- **workers="); }) == 4);
}

TEST_CASE("all formats hold the same numbers, and null where there is none") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kSweep);
  const Csv csv = run_csv({"run", "study.yaml"}, folder);
  const ordered_json json = ordered_json::parse(run_good({"run", "study.yaml", "--format", "json"}, folder).out);
  const std::vector<std::string> lines = split(run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out, '\n');
  REQUIRE(csv.rows.size() == 4);
  REQUIRE(json.size() == 4);
  REQUIRE(lines.size() == 4);
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(ordered_json::parse(lines[r]) == json[r]);
    CHECK(json[r].size() == csv.rows[r].size());
    for (const auto& [column, value] : json[r].items()) {
      CAPTURE(r, column);
      const std::string text = value.is_null() || value.empty() ? ""
                               : value.is_string()              ? value.get<std::string>()
                                                                : value.dump();
      CHECK(csv.rows[r].at(column) == text);
    }
    CHECK(json[r].at("mean_staleness").is_null());  // synchronous
    CHECK(json[r].at("workers").is_number_integer());
    CHECK(json[r].at("batch.per_worker").is_number_integer());
  }
}

TEST_CASE("scenarios come in the order of the axes, the last fastest, however many run at a time") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kSweep);
  const std::string all = run_good({"run", "study.yaml", "--format", "csv", "--jobs", "4"}, folder).out;
  CHECK(all == run_good({"run", "study.yaml", "--format", "csv", "--jobs", "1"}, folder).out);
  const Csv csv = read_csv(all);
  std::vector<std::string> names;
  for (const auto& row : csv.rows) names.push_back(row.at("scenario"));
  CHECK(names == std::vector<std::string>{"workers=1, batch.per_worker=16", "workers=1, batch.per_worker=32",
                                          "workers=4, batch.per_worker=16", "workers=4, batch.per_worker=32"});
  for (const auto& row : csv.rows)
    CHECK(std::stol(row.at("global_batch")) == std::stol(row.at("workers")) * std::stol(row.at("batch.per_worker")));
}

TEST_CASE("--set changes a key, below a map and instead of its opposite") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "batch: {per_worker: 8}\n");
  const Csv csv = run_csv(
      {"run", "study.yaml", "--set", "workers=4", "--set", "batch.global=256", "--set", "dataset.epochs=3"}, folder);
  CHECK(csv.rows.at(0).at("workers") == "4");
  CHECK(csv.rows.at(0).at("global_batch") == "256");
  CHECK(number(csv, 0, "total_s") == Approx(3 * number(csv, 0, "epoch_s")).epsilon(1e-12));
}

TEST_CASE("an axis over a key of the strategy needs no map in the study") {
  const TemporaryFolder folder;
  const std::string axis = "sweep: {strategy.compression: [none, fp16]}\n";
  folder.write("none.yaml", kStudy + axis);  // the default
  folder.write("word.yaml", kStudy + "strategy: data_parallel\n" + axis);
  folder.write("map.yaml", kStudy + "strategy: {name: data_parallel}\n" + axis);
  const std::string map = run_good({"run", "map.yaml", "--format", "csv"}, folder).out;
  CHECK(run_good({"run", "none.yaml", "--format", "csv"}, folder).out == map);
  CHECK(run_good({"run", "word.yaml", "--format", "csv"}, folder).out == map);
  const Csv csv = read_csv(map);
  CHECK(number(csv, 0, "comm_bytes_per_iteration") == 2 * number(csv, 1, "comm_bytes_per_iteration"));
}

TEST_CASE("--set says which axes it drops besides its own") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "sweep: {workers: [1, 2], strategy.overlap: [true, false]}\n");
  const ProgramRun run =
      run_program({"run", "study.yaml", "--set", "strategy=single", "--set", "workers=1"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.err == "note: --set strategy replaces what the axis strategy.overlap would change: the axis is dropped\n");
}

TEST_CASE("--exact and --unfolded give what extrapolation and folding gave") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "sweep: {strategy: [data_parallel, {name: parameter_server, mode: sync}]}\n");
  const Csv quick = run_csv({"run", "study.yaml"}, folder);
  const Csv exact = run_csv({"run", "study.yaml", "--exact"}, folder);
  const Csv unfolded = run_csv({"run", "study.yaml", "--unfolded"}, folder);
  REQUIRE(quick.rows.size() == 2);
  for (std::size_t r = 0; r < 2; ++r) {
    CAPTURE(r);
    CHECK(exact.rows.at(r).at("iterations_simulated") == "200");  // 2 epochs of 6400 / 64
    CHECK(number(quick, r, "iterations_simulated") < 200);
    CHECK(number(exact, r, "total_s") == Approx(number(quick, r, "total_s")).epsilon(1e-9));
    CHECK(number(unfolded, r, "total_s") == Approx(number(quick, r, "total_s")).epsilon(1e-9));
  }
}

TEST_CASE("a step told by shorter ones is what --exact gives") {
  const TemporaryFolder folder;
  folder.write("study.yaml", R"(
study: long_step
model: {name: gpt2, layers: 8}
precision: bf16
dataset: {samples: 16000}
platform: dgx_h100_pod_4
workers: 32
batch: {global: 1600}
compute: {cost_model: fitted, calibration: h100_bf16}
strategy: {name: megatron, tensor: 2, pipeline: 8, micro_batches: 400}
)");
  const Csv quick = run_csv({"run", "study.yaml"}, folder), exact = run_csv({"run", "study.yaml", "--exact"}, folder);
  CHECK(number(quick, 0, "iterations_simulated") == 1);
  CHECK(number(exact, 0, "iterations_simulated") == 10);
  for (const char* column :
       {"iteration_s", "total_s", "compute_s", "comm_s", "exposed_comm_s", "comm_bytes_per_iteration",
        "max_link_utilization", "bubble_fraction", "peak_memory_bytes", "bound_s", "mfu", "tokens_per_s"}) {
    INFO(column);
    CHECK(number(quick, 0, column) == Approx(number(exact, 0, column)).epsilon(1e-9));
  }
  CHECK(quick.rows[0].at("limited_by") == exact.rows[0].at("limited_by"));
}

TEST_CASE("the algorithms that collectives take are a column") {
  const TemporaryFolder folder;
  // Recursive doubling can gather parameters, but not scatter gradients, so the ring does.
  folder.write("study.yaml", kStudy +
                                 "collective: {algorithm: recursive_doubling}\n"
                                 "sweep: {strategy: [data_parallel, {name: sharded_data_parallel, stage: 3}, "
                                 "parameter_server]}\n");
  const Csv csv = run_csv({"run", "study.yaml"}, folder);
  REQUIRE(csv.rows.size() == 3);
  CHECK(csv.rows[0].at("algorithm") == "recursive_doubling");
  CHECK(csv.rows[1].at("algorithm") == "ring+recursive_doubling");
  CHECK(csv.rows[2].at("algorithm").empty());
}

TEST_CASE("warnings are in every format, and on stderr where no table shows them") {
  const TemporaryFolder folder;
  // Of VGG-16 a sample's activations alone are 60 MB: 16,384 samples need 1 TB. More than 200 noisy iterations make
  // estimates of times.
  folder.write("study.yaml",
               "study: a\nplatform: skylake_10gbe\nstack: ideal\nmodel: vgg16\nworkers: 2\nnoise: {compute_cv: 0.1}\n"
               "dataset: {epochs: 40}\nsweep: {batch.per_worker: [8, 16384]}\n");
  const ProgramRun json = run_good({"run", "study.yaml", "--format", "json"}, folder);
  const Csv csv = run_csv({"run", "study.yaml"}, folder);
  const std::string table = run_good({"run", "study.yaml"}, folder).out;
  const ordered_json rows = ordered_json::parse(json.out);
  REQUIRE(rows.size() == 2);
  REQUIRE(rows[0].at("warnings").size() == 1);
  REQUIRE(rows[1].at("warnings").size() == 2);
  const std::string memory = rows[1]["warnings"][0], estimate = rows[1]["warnings"][1];
  CHECK_THAT(memory, Catch::Contains(" of memory, "));
  CHECK_THAT(estimate, Catch::StartsWith("total and epoch times are estimates"));
  CHECK(csv.rows[1].at("warnings") == memory + " | " + estimate);
  for (const std::string& warning : {memory, estimate}) {
    CHECK_THAT(json.err, Catch::Contains("warning: " + warning + "  [batch.per_worker=16384]\n"));
    CHECK_THAT(table, Catch::Contains("warning: " + warning + "  [16384]\n"));
  }
  CHECK(run_good({"run", "study.yaml"}, folder).err.empty());
}

TEST_CASE("an opaque network without a step's time has a warning") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: a\nplatform: dgx1_v100\nmodel: {opaque: net, parameters: 1e6}\nworkers: 2\n");
  const auto says = Catch::Contains("nothing says how long net computes");
  CHECK_THAT(run_good({"run", "study.yaml"}, folder).out, says);
  CHECK_THAT(run_good({"run", "study.yaml", "--set", "compute.step_time=[{batch: 32, time: 9 ms}]", "--set",
                       "batch.per_worker=32"},
                      folder)
                 .out,
             !says);
}

TEST_CASE("a network that leaves out part of training has a warning, unless its step was measured") {
  const TemporaryFolder folder;
  folder.write("net.yaml",
               "model: net\ninput: {channels: 4}\nleft_out: how pairs are matched\nlayers:\n  - {fc: fc, units: 2}\n");
  folder.write("study.yaml", "study: a\nplatform: dgx1_v100\nmodel: ./net.yaml\nworkers: 2\nbatch: {per_worker: 32}\n");
  const auto says = Catch::Contains("net leaves out how pairs are matched");
  CHECK_THAT(run_good({"run", "study.yaml"}, folder).out, says);
  CHECK_THAT(run_good({"run", "study.yaml", "--set", "compute.step_time=[{batch: 32, time: 9 ms}]"}, folder).out,
             !says);
}

TEST_CASE("--trace writes one complete JSON file per scenario, and no other file") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  folder.write("sweep.yaml", kStudy + "sweep: {workers: [2, 3]}\n");
  folder.write("trace.json", "an older file");
  run_good({"run", "study.yaml", "--trace", "trace.json"}, folder);
  run_good({"run", "sweep.yaml", "--trace", "both.json"}, folder);
  CHECK(folder.names() ==
        std::vector<std::string>{"both-1.json", "both-2.json", "study.yaml", "sweep.yaml", "trace.json"});
  for (const char* name : {"trace.json", "both-1.json", "both-2.json"}) {
    CAPTURE(name);
    const ordered_json trace = ordered_json::parse(read_file(folder.path() / name));
    CHECK(trace.at("traceEvents").size() > 10);
  }
}

TEST_CASE("several studies in one call come one after the other") {
  const TemporaryFolder folder;
  folder.write("a.yaml", kStudy);
  folder.write("b.yaml", "study: other\n" + kSweep.substr(kSweep.find('\n') + 1));
  const Csv csv = run_csv({"run", "b.yaml", "a.yaml"}, folder);
  REQUIRE(csv.rows.size() == 5);
  CHECK(csv.header.starts_with("study,scenario,workers,batch.per_worker,global_batch"));
  CHECK(csv.rows[3].at("study") == "other");
  CHECK(csv.rows[4].at("study") == "small");
  CHECK(csv.rows[4].at("batch.per_worker").empty());
  const std::string table = run_good({"run", "b.yaml", "a.yaml"}, folder).out;
  CHECK(table.find("other\n") < table.find("small\n"));
}

TEST_CASE("columns of the table stay aligned with words of any alphabet") {
  const TemporaryFolder folder;
  folder.write("naïve.xml", read_file(kRoot / "platforms/skylake_10gbe.xml"));
  folder.write("plain.xml", read_file(kRoot / "platforms/skylake_10gbe.xml"));
  folder.write("study.yaml",
               "study: a\nplatform: plain.xml\nmodel: mlp_mnist\nsweep: {platform: [naïve.xml, plain.xml]}\n");
  const std::vector<std::string> lines = split(run_good({"run", "study.yaml"}, folder).out, '\n');
  REQUIRE(lines.size() > 3);
  CHECK(lines[2].size() == lines[3].size() + 1);  // ï takes two bytes
  CHECK(lines[1].size() == lines[3].size());
}

TEST_CASE("a scenario that kills its process leaves the others' results alone") {
  const TemporaryFolder folder;
  // SimGrid names the links of the cluster c_link_0_UP and so on, and aborts on a second one of that name.
  std::string text = read_file(kRoot / "platforms/skylake_10gbe.xml");
  const std::size_t end = text.find("</zone>");
  REQUIRE(end != std::string::npos);
  text.insert(end, "<link id=\"skl_link_0_UP\" bandwidth=\"1GBps\" latency=\"0\"/>");
  folder.write("deadly.xml", text);
  folder.write("study.yaml",
               "study: a\nplatform: deadly.xml\nmodel: mlp_mnist\nworkers: 2\n"
               "sweep: {platform: [skylake_10gbe, deadly.xml, skylake_opa]}\n");
  const ProgramRun run = run_program({"run", "study.yaml", "--format", "csv"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::StartsWith("deadly.xml: SimGrid") && Catch::Contains("[platform=deadly.xml]"));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  const Csv csv = read_csv(run.out);
  REQUIRE(csv.rows.size() == 3);
  CHECK(number(csv, 0, "iteration_s") > number(csv, 2, "iteration_s"));  // the slower network
  CHECK(csv.rows[1].at("platform") == "deadly.xml");
  CHECK(csv.rows[1].at("iteration_s").empty());
}

TEST_CASE("SimGrid is loaded only when flows compete, and missed only then") {
  const TemporaryFolder folder;
  folder.write("epocast-simgrid.so", "no module");  // found before the program's own
  folder.write("study.yaml",
               "study: a\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 4\nstrategy: data_parallel\n"
               "sweep: {strategy: [data_parallel, {name: parameter_server, mode: async, servers: 2}]}\n");
  ::setenv("LD_LIBRARY_PATH", folder.path().c_str(), 1);
  const ProgramRun run = run_program({"run", "study.yaml", "--format", "csv"}, folder.path());
  const ProgramRun tried = run_program({"validate", "study.yaml"}, folder.path());
  ::unsetenv("LD_LIBRARY_PATH");
  CAPTURE(run.err, tried.err);
  CHECK(run.exit_code == 3);
  CHECK_THAT(run.err, Catch::StartsWith("internal error: cannot load SimGrid (") &&
                          Catch::Contains("epocast-simgrid.so") && Catch::Contains("[strategy=parameter_server"));
  const Csv csv = read_csv(run.out);
  REQUIRE(csv.rows.size() == 2);
  CHECK(number(csv, 0, "iteration_s") > 0);
  CHECK(csv.rows[1].at("iteration_s").empty());
  CHECK(tried.exit_code == 3);  // it asks SimGrid in any case
  CHECK_THAT(tried.err, Catch::Contains("cannot load SimGrid ("));
}

TEST_CASE("a scenario with bad input keeps its place and axes among good ones") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "sweep: {workers: [1, 65, 2]}\n");
  const ProgramRun run = run_program({"run", "study.yaml", "--format", "json"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::StartsWith("study.yaml:7:22: workers: 65 workers") && Catch::Contains("[workers=65]"));
  const ordered_json json = ordered_json::parse(run.out);
  REQUIRE(json.size() == 3);
  CHECK(json[1].at("workers") == 65);
  CHECK(json[1].at("epoch_s").is_null());
  CHECK(json[2].at("epoch_s").is_number());
}

TEST_CASE("results that cannot be written are an error, not a success") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  for (const Stdout where : {Stdout::closed, Stdout::full})
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"run", "study.yaml"},
                                                      {"list", "models"},
                                                      {"trace", "study.yaml"},
                                                      {"validate", "study.yaml"},
                                                      {"--help"},
                                                      {"--version"}}) {
      CAPTURE(arguments);
      const ProgramRun run = run_program(arguments, folder.path(), where);
      CHECK(run.exit_code == 2);
      CHECK_THAT(run.err, Catch::StartsWith("cannot write the results"));
    }
}

TEST_CASE("help has an example for every command, and there is a version") {
  const TemporaryFolder folder;
  for (const std::string command : {"", "run", "trace", "validate", "list", "reproduce"}) {
    CAPTURE(command);
    const ProgramRun run = command.empty() ? run_good({"--help"}, folder) : run_good({command, "--help"}, folder);
    CHECK_THAT(run.out, Catch::Contains("Example: epocast " + command));
  }
  CHECK_THAT(run_good({"--version"}, folder).out, Catch::Matches("epocast [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace epocast::run_test
