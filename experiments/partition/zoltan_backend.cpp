#include "experiments/partition/zoltan_backend.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "experiments/partition/best_partition.hpp"
#include "experiments/partition/patoh_file.hpp"
#include "sim/error.hpp"
#include "sim/process.hpp"

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

/// Throws ConfigError if the program fails.
void run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork_child();
  if (child < 0) throw ConfigError("cannot start " + command.front());
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // Zoltan warns there
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) throw ConfigError(fmt::format("epocast-zoltan died of signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0)
    throw ConfigError(fmt::format("epocast-zoltan failed with exit code {}", WEXITSTATUS(status)));
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
  BestPartition best(graph, options);
  for (int start = 0; start < std::max(options.starts, 1); ++start)
    for (const double imbalance : imbalances_to_ask(options)) {
      run({program.string(), scratch.file("graph"), scratch.file("parts"), std::to_string(options.parts),
           fmt::format("{}", 1 + imbalance), std::to_string(options.seed + static_cast<std::uint64_t>(start))});
      best.offer(load_partition(scratch.file("parts"), graph.vertices(), options.parts));
    }
  return best.take();
}

}  // namespace epocast
