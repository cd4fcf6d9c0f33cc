// `epocast trace`, `validate` and `list`.

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/collective.hpp"
#include "sim/data_file.hpp"
#include "strategies/register.hpp"
#include "tests/cli/program.hpp"

namespace epocast::trace_validate_list_test {

using namespace epocast::test;
using Catch::Contains;

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;
const std::string kQuickstart = (kRoot / "experiments/studies/vgg16_skylake.yaml").string();

// Simonyan and Zisserman 2015, table 2, configuration D: 138 million; counted layer by layer 138,357,544, in 16 layers
// of a weight and a bias. fp32 takes 4 bytes each.
constexpr double kParameterBytes = 138'357'544 * 4.0;
constexpr std::int64_t kTensors = 32;

std::vector<std::string> first_words(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) out.push_back(line.substr(begin, line.find_first_of(": ", begin) - begin));
  }
  return out;
}

void check_lists(const std::string& text, const std::vector<std::string>& names) {
  const std::vector<std::string> words = first_words(text);
  CHECK_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(std::count(words.begin(), words.end(), name) == 1);
  }
}

}  // namespace

TEST_CASE("the trace of VGG-16 holds its parameters, in CSV and in JSON") {
  const TemporaryFolder folder;
  const std::vector<std::string> lines = split(run_good({"trace", kQuickstart, "--scenario", "1"}, folder).out, '\n');
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(
      run_good({"trace", kQuickstart, "--scenario", "1", "--format", "json"}, folder).out);
  REQUIRE(json.at("layers").size() + 1 == lines.size());
  CHECK(json.at("model") == "vgg16");
  CHECK(json.at("batch") == 32);

  const std::vector<std::string> columns = csv_fields(lines.front());
  const auto column = [&](const char* name) {
    return std::find(columns.begin(), columns.end(), name) - columns.begin();
  };
  REQUIRE(column("gradient_tensors") < std::ssize(columns));
  double parameters = 0, gradients = 0;
  std::int64_t tensors = 0;
  for (std::size_t l = 1; l < lines.size(); ++l) {
    const std::vector<std::string> fields = csv_fields(lines[l]);
    const auto& layer = json.at("layers")[l - 1];
    CAPTURE(lines[l]);
    REQUIRE(fields.size() == columns.size());
    parameters += std::stod(fields[static_cast<std::size_t>(column("parameter_bytes"))]);
    tensors += std::stol(fields[static_cast<std::size_t>(column("gradient_tensors"))]);
    for (const auto& tensor : layer.at("gradients")) gradients += tensor.at("bytes").get<double>();
    for (const char* same :
         {"forward_s", "backward_data_s", "backward_weights_s", "update_s", "output_bytes", "forward_flop"})
      CHECK(std::stod(fields[static_cast<std::size_t>(column(same))]) == layer.at(same).get<double>());
  }
  CHECK(parameters == kParameterBytes);
  CHECK(gradients == kParameterBytes);
  CHECK(tensors == kTensors);
}

TEST_CASE("a trace is that of one scenario") {
  const TemporaryFolder folder;
  const ProgramRun run = run_program({"trace", kQuickstart}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK_THAT(run.err, Contains("has 4 scenarios; choose one with --scenario 1..4"));
  CHECK_THAT(
      run_good({"trace", kQuickstart, "--scenario", "4", "--set", "batch.per_worker=64", "--format", "json"}, folder)
          .out,
      Contains("\"batch\": 64"));
}

TEST_CASE("validate says what each good file is") {
  const TemporaryFolder folder;
  const auto said = [&](const char* file) { return run_good({"validate", (kRoot / file).string()}, folder).out; };
  CHECK_THAT(said("experiments/studies/vgg16_skylake.yaml"), Contains(": study 'vgg16-on-skylake' with 4 scenarios\n"));
  CHECK_THAT(said("workloads/models/vgg16.yaml"),
             Contains(": model 'vgg16' with 40 layers and 138357544 parameters\n"));
  CHECK_THAT(said("platforms/skylake_10gbe.xml"), Contains(": platform 'skylake_10gbe' with 64 devices\n"));
  CHECK_THAT(said("costmodels/timings/skylake_tf1_vgg16.csv"), Contains(": timings with 16 rows\n"));
}

TEST_CASE("validate goes on after a bad file, and one of them is enough to fail") {
  const TemporaryFolder folder;
  folder.write("good.yaml", "model: m\ninput: {channels: 1, height: 1, width: 1}\nlayers: [{fc: f, units: 2}]\n");
  folder.write("bad.yaml", "model: m\ninput: {channels: 1, height: 1, width: 1}\nlayers: [{fc: f, unist: 2}]\n");
  folder.write("neither.yaml", "colour: red\n");
  folder.write("bad.xml", "<platform/>");
  folder.write("bad.csv", "layer,batch\n");
  const ProgramRun run = run_program(
      {"validate", "bad.yaml", "neither.yaml", "bad.xml", "missing.yaml", "bad.csv", "good.yaml"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.out == "good.yaml: model 'm' with 2 layers and 4 parameters\n");
  const std::vector<std::string> errors = split(run.err, '\n');
  REQUIRE(errors.size() == 5);
  CHECK_THAT(errors[0], Catch::StartsWith("bad.yaml:3:"));
  CHECK_THAT(errors[1],
             Catch::StartsWith("neither.yaml:1:1: neither a study (key `study`) nor a model (key `layers`)"));
  CHECK_THAT(errors[2], Catch::StartsWith("bad.xml:1:"));
  CHECK(errors[3] == "missing.yaml: no such file");
  CHECK_THAT(errors[4], Catch::StartsWith("bad.csv:1: column 'kind' is missing"));
}

TEST_CASE("validate finds what only the strategy or SimGrid would notice") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: s\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 4\nstrategy: single\n");
  const ProgramRun run = run_program({"validate", "study.yaml"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("trains on one worker"));
}

TEST_CASE("list names everything that there is, once") {
  const TemporaryFolder folder;
  const auto said = [&](const char* kind) { return run_good({"list", kind}, folder).out; };
  check_lists(said("models"), data_file_names(kRoot / "workloads/models", ".yaml"));
  check_lists(said("platforms"), data_file_names(kRoot / "platforms", ".xml"));
  check_lists(said("schedules"),
              {"naive", "gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2", "pipedream", "2bw", "threaded"});
  check_lists(said("bodies"), {"whole", "tensor"});
  check_lists(said("synchronisations"), builtin_synchronisations().names());
  check_lists(said("algorithms"), collective_algorithm_names());
  check_lists(said("algorithms"), collective_algorithm_choice_names());
  check_lists(said("cost-models"), {"roofline", "measured"});
  check_lists(said("devices"), ConfigNode::load_file(kRoot / "platforms/devices.yaml").keys());
  const std::string calibrations = said("calibrations");
  check_lists(calibrations, data_file_names(kRoot / "costmodels/calibrations", ".yaml"));
  CHECK_THAT(calibrations, Contains("a100_bf16") && Contains("scaled from v100") && Contains("from a100_pcie_bf16"));
  check_lists(said("targets"), {"eserol2019/table_5_14", "eserol2019/table_5_15", "lee2020/chapter3", "gpipe/bubble",
                                "pardnn2020/node_counts", "hermans2017/algorithms"});
  check_lists(said("stacks"), data_file_names(kRoot / "costmodels/stacks", ".yaml"));
  check_lists(said("studies"), data_file_names(kRoot / "experiments/studies", ".yaml"));
  CHECK_THAT(said("studies"), Contains("How to train GPT-3 6.7B on 16 H100") &&                 // a comment
                                  Contains("what random variation of computing times costs"));  // a description
  const std::string strategies = said("strategies");
  check_lists(strategies, {"single", "data_parallel", "parameter_server", "collective_benchmark"});
  CHECK_THAT(strategies, Contains("25 MiB") && Contains("sync | async") && Contains("default"));
}

TEST_CASE("list says all about one thing, or that it is not there") {
  const TemporaryFolder folder;
  const auto said = [&](const char* kind, const char* name) { return run_good({"list", kind, name}, folder).out; };
  const std::string vgg = said("models", "vgg16");
  CHECK_THAT(vgg, Contains("  vgg16   138357544") && Contains("conv1_1") && Contains("  3x224x224 ") &&
                      Contains("  102764544 ") && !Contains("resnet50"));
  CHECK_THAT(said("platforms", "dgx1_p100"), Contains("Tesla P100") && Contains("sources\n") && !Contains("dgx2"));
  CHECK_THAT(said("platforms", "p4d"), Contains("A100 SXM4 40GB") && Contains("\n       32  "));
  CHECK_THAT(said("devices", "rtx_4090"), Contains("165.2 TFLOP/s") && Contains("tf32, fp16, bf16 as NVIDIA L40S\n") &&
                                              Contains("\nsource: ") && !Contains("rtx_3090"));
  CHECK(said("strategies", "fsdp").starts_with("fsdp: "));
  CHECK(said("bodies", "tensor").starts_with("tensor: "));
  CHECK(said("algorithms", "ring") == "ring: all_reduce, reduce_scatter, all_gather\n");
  CHECK_THAT(said("calibrations", "a100_bf16"), Contains("gemm") && !Contains("a100_bf16_vllm"));
  CHECK_THAT(said("targets", "deepa/table_1"), Contains("layers of figures 1 and 2") && !Contains("lee2020"));
  CHECK_THAT(said("stacks", "gloo"), Contains("\nsource: Buckets") && !Contains("horovod_xla"));
  CHECK_THAT(said("studies", "failures"), Contains("\nstudy: ") && !Contains("stragglers"));
  for (const auto& [kind, name, remedy] : {std::tuple{"models", "vgg61", "no model 'vgg61' (did you mean 'vgg16'?)"},
                                           {"platforms", "dgx3", "no platform 'dgx3' (did you mean 'dgx2'?)"},
                                           {"strategies", "fsdq", "did you mean 'fsdp'?"},
                                           {"calibrations", "a100_bf61", "did you mean 'a100_bf16'?"},
                                           {"algorithms", "rink", "did you mean 'ring'?"}}) {
    const ProgramRun run = run_program({"list", kind, name}, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Contains(remedy));
  }
}

}  // namespace epocast::trace_validate_list_test
