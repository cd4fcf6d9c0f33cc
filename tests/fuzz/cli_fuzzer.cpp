// Random command lines over random files: whatever is asked, the program ends by itself, with exit code 0, 1 or 2.
//   cli_fuzzer [count=300] [first=0] [jobs=2]
// Command line number i is the same on every machine. One that breaks the rule is printed, and its files are kept.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "experiments/cli/commands.hpp"

namespace fs = std::filesystem;

namespace {

constexpr rlim_t kMostComputing = 60;   // s: more is a hang; everything here is small
constexpr unsigned kMostWaiting = 900;  // s

using Random = std::mt19937_64;
using Words = std::vector<std::string>;

std::size_t below(Random& random, std::size_t limit) { return random() % limit; }
bool one_in(Random& random, std::size_t n) { return below(random, n) == 0; }
const std::string& any(Random& random, const Words& words) { return words[below(random, words.size())]; }

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Good files to start from, by what they are.
struct Seeds {
  Words studies, models, platforms, tables;

  Seeds() {
    const fs::path root = EPOCAST_SOURCE_DIR;
    const auto add = [&](Words& to, const char* folder, const char* extension) {
      std::vector<fs::path> files;
      for (const auto& entry : fs::recursive_directory_iterator(root / folder))
        if (entry.path().extension() == extension && entry.file_size() < 20'000) files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      for (const fs::path& file : files) to.push_back(read_file(file));
    };
    add(studies, "tests/fuzz/seeds/study", "");
    add(studies, "tests/fuzz/seeds/study", ".yaml");
    studies.push_back("study: s\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 4\n");
    add(models, "workloads/models", ".yaml");
    add(platforms, "platforms", ".xml");
    add(tables, "costmodels/timings", ".csv");
    add(tables, "tests/fuzz/seeds/import", ".csv");
  }
};

const Words kNumbers{"0",       "1",
                     "2",       "3",
                     "7",       "8",
                     "64",      "-1",
                     "0.5",     "1e6",
                     "1e300",   "999999999999",
                     "1000000", "9223372036854775807",
                     "1e-9",    "nan",
                     "inf",     "0x10",
                     "''",      "~",
                     "true",    "auto",
                     "all"};
const Words kQuantities{"1 GB",     "25 MB",     "0 B",     "1 us", "10 s", "1 GB/s",
                        "100 Gb/s", "1 TFLOP/s", "1e30 GB", "-1 s", "5 XB"};
const Words kShapes{"[]",     "{}",   "[1, 2]",       "{name: data_parallel}", "[[1]]",          "{a: {b: c}}",
                    "'text'", "\xff", "[1, 2, 3, 4]", "{global: 64}",          "{per_worker: 8}"};
const Words kStrategies{"single",
                        "data_parallel",
                        "parameter_server",
                        "pipeline",
                        "sharded_data_parallel",
                        "downpour",
                        "easgd",
                        "gossip",
                        "hogwild",
                        "local_sgd",
                        "filter_parallel",
                        "layerwise",
                        "operators",
                        "layerwise_data_parallel",
                        "model_averaging",
                        "adag",
                        "agn",
                        "dynsgd",
                        "partitioned",
                        "nonsense",
                        "{mesh: {data: rest}}",
                        "{mesh: {data: rest, tensor: 2}, body: {name: filters, exchange: root}}",
                        "{mesh: {pipeline: 2, data: rest}, schedule: {name: gpipe, micro_batches: 2}}",
                        "{mesh: {tensor: 2, data: rest}, body: {name: operators, nodes: passes, bandwidth: 1 GB/s}}",
                        "{mesh: {tensor: 2}, body: {name: layerwise, exchange: device_servers}}",
                        "{mesh: {data: rest, tensor: 2}, synchronisation: {name: sharded, stage: 2}}"};
const Words kNames{
    "skylake_10gbe", "dgx1_v100",    "k80_server", "p100_cluster", "mlp_mnist", "alexnet",     "vgg16",
    "resnet50",      "ring",         "auto",       "message",      "flow",      "closed_form", "recursive_doubling",
    "tree",          "hierarchical", "fp16",       "bf16",         "fp32",      "adam",        "sgd",
    "momentum",      "roofline",     "measured",   "fitted",       "sync",      "async",       "stale",
    "backup",        "gpipe",        "1f1b",       "interleaved",  "zb_h1",     "layer",       "model",
    "tensor",        "cycle"};
const Words kKeys{"workers",
                  "platform",
                  "model",
                  "batch",
                  "batch.per_worker",
                  "batch.global",
                  "dataset.samples",
                  "dataset.epochs",
                  "dataset.drop_last",
                  "dataset.shards",
                  "strategy",
                  "strategy.name",
                  "strategy.mode",
                  "strategy.servers",
                  "strategy.overlap",
                  "strategy.bucket",
                  "strategy.accumulation",
                  "strategy.staleness",
                  "strategy.stages",
                  "strategy.micro_batches",
                  "strategy.schedule",
                  "strategy.stage",
                  "strategy.period",
                  "strategy.granularity",
                  "strategy.compression",
                  "strategy.top_k",
                  "strategy.location",
                  "strategy.parts",
                  "strategy.mesh",
                  "strategy.mesh.tensor",
                  "strategy.body",
                  "strategy.body.exchange",
                  "strategy.synchronisation",
                  "collective.algorithm",
                  "collective.level",
                  "collective.rings",
                  "collective.reduction_rate",
                  "collective.calibration",
                  "noise.compute_cv",
                  "noise.seed",
                  "noise.seeds",
                  "noise.kind",
                  "stragglers",
                  "stops",
                  "degraded_links",
                  "schedule",
                  "sweep.workers",
                  "sweep",
                  "sweep.strategy",
                  "compute.cost_model",
                  "compute.efficiency",
                  "compute.timings",
                  "compute.step_time",
                  "memory.recompute",
                  "memory.reserve",
                  "network.efficiency",
                  "network.message_overhead",
                  "optimizer",
                  "precision",
                  "steps",
                  "study",
                  "nonsense",
                  "",
                  "a..b",
                  "strategy.name.x"};

const Words kTokens{"[",    "]",     "{",     "}",     ": ",        "- ",      ", ",    "\n",   "\n  ",
                    "#",    "&a ",   "*a",    "!",     "\"",        "'",       "%",     "<<: ", "---\n",
                    "\t",   "\r",    "1e999", " GB/s", "\xc2\x85",  "</host>", "<link", "=\"",  "/>",
                    "<!--", "&amp;", "0",     "-",     "999999999", "nan",     ",,",    ";"};

std::string value(Random& random) {
  switch (below(random, 6)) {
    case 0: return any(random, kQuantities);
    case 1: return any(random, kShapes);
    case 2: return any(random, kStrategies);
    case 3: return any(random, kNames);
    default: return any(random, kNumbers);
  }
}

/// Changes a few bytes, tokens or lines.
std::string mutated(std::string text, Random& random) {
  for (std::size_t steps = below(random, 4); steps > 0; --steps) {
    const std::size_t at = below(random, text.size() + 1);
    switch (below(random, 7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
        break;
      case 1: text.insert(at, any(random, kTokens)); break;
      case 2: text.resize(one_in(random, 4) ? at : text.size()); break;
      case 3: text.erase(at, 1 + below(random, 8)); break;
      case 4: text.insert(at, value(random)); break;
      case 5: {  // a line goes or comes twice
        const std::size_t begin = text.rfind('\n', at) + 1, end = std::min(text.find('\n', at), text.size());
        if (one_in(random, 2))
          text.insert(begin, text.substr(begin, end - begin) + "\n");
        else
          text.erase(begin, end - begin);
        break;
      }
      default: {  // another value behind a colon or an equals sign
        const std::size_t sign = text.find_first_of(":=,", at);
        if (sign == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_of(",}\n\"", sign + 2), text.size());
        text.replace(sign + 1, end - sign - 1, " " + value(random));
      }
    }
  }
  return text;
}

struct CommandLine {
  Words arguments;
  std::map<std::string, std::string> files;
};

CommandLine make(Random& random, const Seeds& seeds) {
  CommandLine out;
  Words& arguments = out.arguments;
  const auto file = [&](const char* name, const Words& from) {
    out.files[name] = mutated(any(random, from), random);
    return std::string(name);
  };
  const auto overrides = [&] {
    for (std::size_t n = below(random, 4); n > 0; --n)
      arguments.insert(arguments.end(),
                       {"--set", any(random, kKeys) + (one_in(random, 30) ? "" : "=") + value(random)});
  };
  const auto options = [&](const std::vector<Words>& table) {
    for (std::size_t n = below(random, 3); n > 0; --n) {
      const Words& option = table[below(random, table.size())];
      arguments.push_back(option.front());
      if (option.size() > 1) arguments.push_back(option[1 + below(random, option.size() - 1)]);
    }
  };
  switch (below(random, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      arguments = {"run", file("s.yaml", seeds.studies)};
      overrides();
      // Small enough to simulate whatever else it asks for.
      arguments.insert(arguments.end(), {"--set", "dataset.samples=2000", "--set", "dataset.epochs=2", "--jobs", "1"});
      options({{"--format", "csv", "json", "jsonl", "table", "xml"},
               {"--explain"},
               {"--exact"},
               {"--unfolded"},
               {"--scenario", "1", "2", "0", "-1", "99999999999999999999"},
               {"--trace", "t.json", "none/t.json", "."},
               {"--details", "d.json", "", "/dev/null"},
               {"--plot", "p.svg", "none/p.svg"},
               {"--plot-column", "workers", "nonsense"}});
      break;
    case 5:
    case 6: arguments = {"validate", file("s.yaml", seeds.studies)}; break;
    case 7:
      arguments = {"validate", one_in(random, 2) ? file("m.yaml", seeds.models) : file("t.csv", seeds.tables)};
      break;
    case 8: arguments = {"validate", file("p.xml", seeds.platforms)}; break;
    case 9:
      arguments = {"trace", file("s.yaml", seeds.studies)};
      overrides();
      options({{"--format", "csv", "json", "nonsense"}, {"--scenario", "1", "0", "5"}});
      break;
    case 10:
      arguments = {"calibrate", any(random, {"compute", "network", "steps", "nonsense"}), "--from",
                   file("t.csv", seeds.tables)};
      options({{"--device", "d", ""},
               {"--model", "mlp_mnist", "nonsense", ""},
               {"--batch", "8", "-1"},
               {"--peak-rate", "1 TFLOP/s", "nonsense"},
               {"--memory-bandwidth", "1 GB/s", "0 B/s"},
               {"--units", "1", "0"},
               {"-o", "c.yaml", ""}});
      break;
    default:
      arguments = {
          any(random, {"list", "run", "reproduce", "platform", "partition", "nonsense", "--help", "--version", ""})};
      options({{"strategies"},
               {"models"},
               {"--list"},
               {"--help"},
               {"--format", "csv", "nonsense"},
               {"mlp_mnist"},
               {"--parts", "2", "0", "-1", "1000000000"},
               {"--hypergraph", "s.yaml"},
               {"dgx_h100_pod"},
               {"--nodes", "2"},
               {"--algorithm", "nonsense", "contiguous"},
               {"\xff\xfe"}});
      // Without a name it would regenerate every published table.
      if (arguments.front() == "reproduce") arguments.push_back("--list");
      break;
  }
  return out;
}

void write_files(const CommandLine& line, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& [name, text] : line.files) std::ofstream(folder / name, std::ios::binary) << text;
}

[[noreturn]] void execute(CommandLine line, const fs::path& folder) {
  const rlimit computing{kMostComputing, kMostComputing + 5}, memory{6UL << 30, 6UL << 30}, no_core{0, 0};
  setrlimit(RLIMIT_CPU, &computing);
  if (!EPOCAST_SANITIZED) setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kMostWaiting);
  write_files(line, folder);
  if (chdir(folder.c_str()) != 0) _exit(99);
  const int out = open("/dev/null", O_WRONLY), err = open("stderr", O_CREAT | O_TRUNC | O_WRONLY, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<char*> argv{const_cast<char*>("epocast")};
  for (std::string& argument : line.arguments) argv.push_back(argument.data());
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  std::exit(epocast::run_command_line(argc, argv.data(), epocast::builtin_registries()));
}

std::string shown(const CommandLine& line) {
  std::string out = "epocast";
  for (const std::string& argument : line.arguments) out += " '" + argument + "'";
  return out;
}

/// Runs command lines first, first + step, ... Returns how many broke the rule.
int fuzz(long count, long first, long step, const Seeds& seeds, const fs::path& scratch) {
  int broken = 0;
  for (long i = first; i < count; i += step) {
    Random random(static_cast<std::uint64_t>(i));
    const CommandLine line = make(random, seeds);
    const fs::path folder = scratch / std::to_string(i);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) execute(line, folder);
    int status = 0;
    waitpid(child, &status, 0);
    const bool good = WIFEXITED(status) && WEXITSTATUS(status) <= 2;
    std::error_code ignored;
    if (good) {
      fs::remove_all(folder, ignored);
      continue;
    }
    ++broken;
    std::string said = read_file(folder / "stderr");
    std::printf("%ld: %s %d: %s\n  %s\n  files: %s\n", i, WIFSIGNALED(status) ? "signal" : "exit",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), shown(line).c_str(),
                said.substr(0, 300).c_str(), folder.c_str());
    std::fflush(stdout);
  }
  return broken;
}

}  // namespace

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 300, first = argc > 2 ? std::atol(argv[2]) : 0;
  const long jobs = argc > 3 ? std::atol(argv[3]) : 2;
  setenv("EPOCAST_DATA", EPOCAST_SOURCE_DIR, 1);
  const Seeds seeds;
  const fs::path scratch = fs::temp_directory_path() / ("epocast-cli-fuzz-" + std::to_string(getpid()));
  std::vector<pid_t> workers;
  for (long j = 0; j < jobs; ++j) {
    workers.push_back(fork());
    if (workers.back() == 0) _exit(fuzz(first + count, first + j, jobs, seeds, scratch) > 0);
  }
  bool good = true;
  for (const pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::error_code ignored;
  if (good) fs::remove_all(scratch, ignored);
  std::printf("cli_fuzzer: %ld command lines from %ld, %s\n", count, first, good ? "none broke the rule" : "see above");
  return good ? 0 : 1;
}
