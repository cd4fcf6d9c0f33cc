// `epocast calibrate compute` without --from, with a script in place of epocast_microbench, so that it runs anywhere
// and says the same every time.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/cli/program.hpp"

namespace epocast::calibrate_measure_test {

using namespace epocast::test;
namespace fs = std::filesystem;

namespace {

const char* const kModel =
    "model: tiny\ninput: {channels: 4}\nlayers:\n  - {fc: a, units: 8}\n  - relu\n  - {fc: b, units: 2}\n"
    "  - {softmax: p}\n";

// All kernels take 1 ms, 13 in all.
const char* const kRows = R"(#!/bin/sh
echo "$@" >&2
cat <<END
# device: a CPU, 1 core
# library: oneDNN 2.6.3
# date: 2026-01-31
# threads: 1
# peak_rate: 100 GFLOP/s
# memory_bandwidth: 10 GB/s
# units: 1
model,batch,layer,pass,kernel,repetitions,time_s,fastest_s,spread,in_step_s
tiny.yaml,2,a,forward,0,9,0.001,0.0009,0.01,
tiny.yaml,2,a.relu,forward,1,9,0.001,0.0009,0.01,
tiny.yaml,2,b,forward,2,9,0.001,0.0009,0.01,
tiny.yaml,2,p,forward,3,9,0.001,0.0009,0.01,
tiny.yaml,2,p,backward_data,4,9,0.001,0.0009,0.01,
tiny.yaml,2,b,backward_data,5,9,0.001,0.0009,0.01,
tiny.yaml,2,b,backward_weights,6,9,0.001,0.0009,0.01,
tiny.yaml,2,a.relu,backward_data,7,9,0.001,0.0009,0.01,
tiny.yaml,2,a,backward_weights,8,9,0.001,0.0009,0.01,
tiny.yaml,2,a,update,9,9,0.001,0.0009,0.01,
tiny.yaml,2,b,update,10,9,0.001,0.0009,0.01,
tiny.yaml,2,,step,-1,9,STEP,0.010,0.01,
END
exit STATUS
)";

/// Makes epocast run a script that says the step took `step` and ends with `status`.
class FakeMicrobench {
 public:
  explicit FakeMicrobench(const std::string& step, const std::string& status = "0") {
    std::string script = kRows;
    script.replace(script.find("STEP"), 4, step);
    script.replace(script.find("STATUS"), 6, status);
    const fs::path file = folder_.write("microbench.sh", script);
    fs::permissions(file, fs::perms::owner_all);
    ::setenv("EPOCAST_MICROBENCH", file.c_str(), 1);
  }
  ~FakeMicrobench() { ::unsetenv("EPOCAST_MICROBENCH"); }

 private:
  TemporaryFolder folder_;
};

ProgramRun calibrate(const TemporaryFolder& folder, std::vector<std::string> more) {
  folder.write("tiny.yaml", kModel);
  more.insert(more.begin(), {"calibrate", "compute", "--model", "tiny.yaml", "--batch", "2"});
  return run_program(more, folder.path());
}

/// Makes `python3` one that finds PyTorch, and runs scripts with --dry-run: 1 s for every kernel.
class FakePyTorch {
 public:
  FakePyTorch() {
    const fs::path file = folder_.write("python3",
                                        "#!/bin/sh\nPATH=${PATH#*:}\nif [ \"$1\" = -c ]; then echo True; exit; fi\n"
                                        "echo \"$@\" >&2\nexec python3 -B \"$@\" --dry-run --name 'a CPU'\n");
    fs::permissions(file, fs::perms::owner_all);
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~FakePyTorch() { ::setenv("PATH", path_.c_str(), 1); }

 private:
  TemporaryFolder folder_;
  std::string path_ = std::getenv("PATH");
};

bool has_python() { return std::system("python3 --version >/dev/null 2>&1") == 0; }

}  // namespace

TEST_CASE("measuring writes a calibration, measurements and layer timings that epocast reads") {
  const FakeMicrobench fake("0.011");
  const TemporaryFolder folder;
  const ProgramRun run = calibrate(folder, {"--kernels", "onednn", "--budget", "90 s", "-o", "here.yaml",
                                            "--measurements", "here.csv", "--layer-timings", "layers.csv"});
  CHECK_THAT(run.err, Catch::Contains("--budget 90\n"));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(folder.names() == std::vector<std::string>{"here.csv", "here.yaml", "layers.csv", "tiny.yaml"});
  CHECK_THAT(run.out, Catch::StartsWith("a CPU, 1 core: 11 kernel times"));
  const ProgramRun again = run_good({"calibrate", "compute", "--from", "here.csv", "-o", "again.yaml"}, folder);
  CHECK(again.out == run.out);
  for (const std::string& compute : {std::string("{cost_model: measured, timings: layers.csv}"),
                                     std::string("{cost_model: fitted, calibration: here.yaml}")}) {
    folder.write("study.yaml",
                 "study: s\nplatform: skylake_10gbe\nmodel: tiny.yaml\nworkers: 1\nbatch: {per_worker: 2}\n"
                 "compute: " +
                     compute + "\n");
    const ProgramRun study = run_program({"run", "study.yaml"}, folder.path());
    INFO(study.err);
    CHECK(study.exit_code == 0);
  }
}

TEST_CASE("the check compares the sum of kernels with the step") {
  const TemporaryFolder folder;
  {
    const FakeMicrobench fake("0.0105");  // 11 kernels of 1 ms: 4.8 % too much
    const ProgramRun run = calibrate(folder, {"--check"});
    INFO(run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.out, Catch::Contains("+4.8 %"));
  }
  const FakeMicrobench fake("0.0125");  // 12 % too little
  const ProgramRun run = calibrate(folder, {"--check"});
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.out, Catch::Contains("-12.0 %") && Catch::Contains("missed"));
}

TEST_CASE("if measuring fails, nothing is written") {
  const TemporaryFolder folder;
  {
    const FakeMicrobench fake("0.011", "3");
    const ProgramRun run = calibrate(folder, {"--kernels=onednn", "-o", "here.yaml", "--measurements", "here.csv"});
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Catch::Contains("could not be timed"));
  }
  CHECK(folder.names() == std::vector<std::string>{"tiny.yaml"});
  ::setenv("EPOCAST_MICROBENCH", "/nowhere/epocast_microbench", 1);
  const ProgramRun run = calibrate(folder, {"--kernels=onednn", "-o", "here.yaml"});
  ::unsetenv("EPOCAST_MICROBENCH");
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::Contains("libdnnl-dev") && Catch::Contains("--from"));
  CHECK(folder.names() == std::vector<std::string>{"tiny.yaml"});
}

TEST_CASE("where PyTorch is installed its kernels are timed, and the report says what forecasts will be of") {
  const TemporaryFolder folder;
  if (has_python()) {
    const FakePyTorch fake;
    const ProgramRun run = calibrate(folder, {"--budget", "2min", "--threads", "1", "--measurements", "here.csv"});
    INFO(run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.err, Catch::Contains("pytorch_kernels.py - -o - --budget 120 s --threads 1\n"));
    CHECK_THAT(run.out, Catch::StartsWith("a CPU: ") && Catch::Contains("forecasts will be sums of PyTorch's kernels"));
    CHECK_THAT(read_file(folder.path() / "here.csv"), Catch::Contains("backward_weights"));
  }
  const FakeMicrobench fake("0.011");
  const ProgramRun run = calibrate(folder, {"--kernels", "onednn"});
  CHECK_THAT(run.out, Catch::Contains("sums of") && !Catch::Contains("PyTorch's kernels;"));
}

TEST_CASE("a time that cannot be kept is refused before anything is timed") {
  const TemporaryFolder folder;
  for (const auto& [budget, problem] : {std::pair{"10", "unit"}, {"0 s", "from 1 s"}, {"soon", "--budget: "}}) {
    const ProgramRun run = calibrate(folder, {"--budget", budget});
    CAPTURE(budget, run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Catch::StartsWith("--budget: ") && Catch::Contains(problem));
  }
}

TEST_CASE("the PyTorch script would time every kernel of the list") {
  if (!has_python()) return;  // nothing to run it with
  const TemporaryFolder folder;
  // Every kind of layer but those that the script names as left out.
  folder.write("net.yaml", R"(model: net
input: {channels: 3, height: 8, width: 8}
layers:
  - {conv: c, filters: 16, kernel: 3, stride: 2, padding: same}
  - batch_norm
  - relu
  - lrn
  - {pool: m, kernel: 2, type: max}
  - {conv: d, filters: 16, kernel: 1, groups: 2}
  - {add: s, inputs: [d, m]}
  - {concat: j, inputs: [s, m]}
  - {global_pool: g}
  - {dropout: o}
  - {fc: f, units: 10}
  - {softmax: p}
)");
  run_good({"calibrate", "compute", "--model", "net.yaml,gnmt", "--batch", "2,4", "--kernel-list", "kernels.csv"},
           folder);
  const std::string script = fs::path(EPOCAST_SOURCE_DIR) / "workloads/microbench/pytorch_kernels.py";
  const std::string in_folder = "cd '" + folder.path().string() + "' && ";
  REQUIRE(std::system((in_folder + "python3 '" + script + "' kernels.csv --dry-run -o dry.csv 2>left.txt").c_str()) ==
          0);
  const auto rows_of = [&](const std::string& name) {
    std::set<std::string> rows;
    for (const std::string& line : split(read_file(folder.path() / name), '\n')) {
      if (line.empty() || line.starts_with('#') || line.starts_with("operator")) continue;
      const std::vector<std::string> fields = csv_fields(line);
      std::string pass = fields[1];
      // Gradients that PyTorch computes together are one pass there.
      const bool both = name == "kernels.csv" && pass != "forward" &&
                        (fields[4] == "batch_norm" || fields[4] == "layer_norm" || fields[4] == "lstm");
      if (both) pass = "backward";
      if (name == "kernels.csv" && fields[4] == "attention") continue;  // additive, in gnmt
      rows.insert(fields[0] + " " + pass + " " + fields[2]);
    }
    return rows;
  };
  CHECK(rows_of("dry.csv") == rows_of("kernels.csv"));
  CHECK(rows_of("dry.csv").size() > 60);
  CHECK(read_file(folder.path() / "left.txt") == "left out: attention: it has no kernel of its own in PyTorch\n");
  // What the script writes, epocast reads.
  run_good({"calibrate", "compute", "--from", "dry.csv", "-o", "dry.yaml"}, folder);

  // In 16 bits a layer is the kernels that mixed precision runs, each distinct one once; gradients that PyTorch
  // computes together are one kernel, which moves what both do (it counts its values twice).
  for (const std::string precision : {"bf16", "tf32"}) {
    CAPTURE(precision);
    run_good(
        {"calibrate", "compute", "--model",
         "net.yaml,{name: gpt, layers: 1, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, fused: true, pairs: "
         "causal}",
         "--batch", "2", "--precision", precision, "--kernel-list", "kernels.csv"},
        folder);
    REQUIRE(std::system(
                (in_folder + "python3 '" + script + "' kernels.csv --dry-run -o dry.csv 2>/dev/null").c_str()) == 0);
    const std::string timed = read_file(folder.path() / "dry.csv");
    CHECK_THAT(timed, Catch::Contains("# precision: " + precision + "\n"));
    if (precision == "bf16") {
      // 2 sequences of 32 positions and 64 features: 2 accesses forward; of both gradients 3 and 2, halved.
      CHECK_THAT(timed, Catch::Contains("\nmemory,forward,op=layer_norm values=8192,") &&
                            Catch::Contains("\nmemory,backward,op=layer_norm values=10240,") &&
                            !Catch::Contains("backward_data,op=layer_norm"));
      CHECK_THAT(timed, Catch::Contains("\ngemm,backward_weights,m=64 n=192 k=64 ta=0 tb=1,") &&
                            Catch::Contains("\nattention,backward,batch=2 heads=4 kv_heads=4 queries=32 keys=32 "));
    }
    run_good({"calibrate", "compute", "--from", "dry.csv", "-o", precision + ".yaml"}, folder);
    CHECK_THAT(read_file(folder.path() / (precision + ".yaml")), Catch::Contains("precision: " + precision + "\n"));
  }
  const std::vector<std::string> fp8 = {"--precision", "fp8", "--kernel-list", "fp8.csv"};
  CHECK_THAT(calibrate(folder, fp8).err, Catch::StartsWith("--precision: kernels of fp8 are not timed here"));
  CHECK_THAT(calibrate(folder, {"--precision", "bf16", "--kernels", "onednn"}).err,
             Catch::StartsWith("--precision: oneDNN's kernels are timed in fp32"));

  folder.write("cut.csv", read_file(folder.path() / "kernels.csv").substr(0, 900));
  CHECK(std::system((in_folder + "python3 '" + script + "' cut.csv --dry-run -o cut.out 2>/dev/null").c_str()) != 0);
  CHECK_FALSE(fs::exists(folder.path() / "cut.out"));
}

}  // namespace epocast::calibrate_measure_test
