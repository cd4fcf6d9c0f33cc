#include "experiments/partition/zoltan_backend.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "experiments/partition/patoh_file.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with everything in it.
class Scratch {
 public:
  Scratch() {
    std::string path = (fs::temp_directory_path() / "epocast-zoltan-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw ConfigError("cannot make a folder in " + fs::temp_directory_path().string());
    path_ = path;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

int run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw ConfigError("cannot start " + command.front());
  if (child == 0) {
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

Partition partition_with_zoltan(const Hypergraph& graph, const PartitionOptions& options) {
  check_partition_options(graph, options);
  if (options.objective != CutObjective::connectivity)
    throw ConfigError("--algorithm zoltan: minimises connectivity only");
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown).parent_path() / "epocast-zoltan";
  if (unknown || !fs::exists(program))
    throw ConfigError(
        "--algorithm zoltan: this epocast was built without Zoltan; install libtrilinos-zoltan-dev and build again, or "
        "use --algorithm hypergraph");
  const Scratch scratch;
  {
    std::ofstream out(scratch.file("graph"));
    write_patoh(out, graph);
    if (!out.flush()) throw ConfigError("cannot write " + scratch.file("graph"));
  }
  const double limit = weight_limit(graph.total_weight(), options.parts, options.imbalance) * (1 + 1e-9);
  Partition best;
  std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
  for (int start = 0; start < std::max(options.starts, 1); ++start) {
    const int code = run({program.string(), scratch.file("graph"), scratch.file("parts"), std::to_string(options.parts),
                          fmt::format("{}", 1 + options.imbalance),
                          std::to_string(options.seed + static_cast<std::uint64_t>(start))});
    if (code != 0) throw ConfigError(fmt::format("epocast-zoltan failed with exit code {}", code));
    const Partition partition = load_partition(scratch.file("parts"), graph.vertices(), options.parts);
    const std::pair figure{std::max(0.0, load_balance(graph, partition).max - limit),
                           cut_cost(graph, partition, CutObjective::connectivity)};
    if (figure >= least) continue;
    least = figure;
    best = partition;
  }
  return best;
}

}  // namespace epocast
