// A sweep by several ranks, with a launcher's variables and, where there is one, by mpirun.

#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>

#include "tests/cli/program.hpp"

namespace epocast::rank_test {

using namespace epocast::test;

namespace {

const std::string kStudy =
    "study: many\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\ndataset: {samples: 6400}\nsweep:\n"
    "  workers: [1, 2, 4]\n  batch.per_worker: {from: 10, to: 14, step: 1}\n  strategy: [data_parallel, "
    "parameter_server]\n";
constexpr int kRanks = 4;
const std::vector<std::string> kSweep{"sweep", "study.yaml", "--store", "all.sqlite", "--jobs", "1"};

/// Variables of the environment, while it lives.
class Variables {
 public:
  explicit Variables(std::map<std::string, std::string> all) : all_(std::move(all)) {
    for (const auto& [name, value] : all_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : all_) ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::string> all_;
};

std::unique_ptr<RunningProgram> start_rank(int rank, const TemporaryFolder& folder) {
  const Variables launcher({{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                            {"OMPI_COMM_WORLD_SIZE", std::to_string(kRanks)},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(kRanks)}});
  return std::make_unique<RunningProgram>(kSweep, folder.path(), StartOptions{.own_session = true});
}

std::string rows(const TemporaryFolder& folder, const std::string& store) {
  return run_good({"results", store, "--format", "jsonl"}, folder).out;
}

/// What `text` says before `what`: "15" of "rank 1 of 4: 15 scenarios: ..." before " scenarios".
int number_before(const std::string& text, const std::string& what) {
  const std::size_t end = text.find(what);
  REQUIRE(end != std::string::npos);
  return std::stoi(text.substr(text.rfind(' ', end - 1) + 1));
}

}  // namespace

TEST_CASE("four ranks make the store that one process makes") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const std::string alone = run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out;
  for (const int computed : {30, 0}) {  // the second time there is nothing to do
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (int r = 0; r < kRanks; ++r) ranks.push_back(start_rank(r, folder));
    int sum = 0, completed = 0;
    for (const auto& rank : ranks) {
      const ProgramRun run = rank->finish();
      CAPTURE(run.err, run.out);
      CHECK(run.exit_code == 0);
      sum += number_before(run.out, " simulated now");
      completed += run.out.find("many: all 30 scenarios in all.sqlite, 0 failed\n") != std::string::npos ? 1 : 0;
    }
    CHECK(sum == computed);
    CHECK(completed >= 1);
    CHECK(folder.names() == std::vector<std::string>{"all.sqlite", "study.yaml"});
    CHECK(rows(folder, "all.sqlite") == alone);
  }
  CHECK(run_good(kSweep, folder).out ==
        "many: 30 scenarios in all.sqlite: 0 simulated now, 30 stored before, 0 failed\n");
  const std::string runs = run_good({"results", "all.sqlite", "--runs"}, folder).out;
  CHECK(split(runs, '\n').size() == 2);  // a head and one run
}

TEST_CASE("a rank that was killed goes on where it was") {
  const TemporaryFolder folder;
  // Each scenario takes some hundredths of a second; the rank has ten of forty.
  folder.write("study.yaml",
               "study: slow\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\nworkers: 16\n"
               "strategy: {name: parameter_server, mode: async}\nnoise: {compute_cv: 0.1}\n"
               "dataset: {samples: 20000}\nsweep: {batch.per_worker: {from: 31, to: 70, step: 1}}\n");
  const std::string part = "all.part-2-of-4.sqlite";
  const auto stored = [&] {
    const ProgramRun run = run_program({"results", part, "--format", "csv", "--columns", "workers"}, folder.path());
    return run.exit_code == 0 ? static_cast<int>(std::ranges::count(run.out, '\n')) - 1 : 0;
  };
  const auto rank = start_rank(1, folder);
  while (stored() < 2 && !rank->has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  for (const int process : processes_of_session(rank->process())) kill(process, SIGKILL);
  rank->finish();
  const int before = stored();  // 10 where it was faster than we: its part is gone then, and this is 0
  for (int r = 0; r < kRanks; ++r) {
    const ProgramRun run = start_rank(r, folder)->finish();
    CAPTURE(run.err, run.out);
    CHECK(run.exit_code == 0);
    if (r == 1 && before > 0) {
      CHECK(number_before(run.out, " stored before") == before);
      CHECK(number_before(run.out, " simulated now") == 10 - before);
    }
  }
  CHECK(rows(folder, "all.sqlite") == run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out);
}

TEST_CASE("who is a rank") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const auto says = [&](std::map<std::string, std::string> variables, const std::string& what,
                        const std::vector<std::string>& more = {}) {
    const Variables launcher(std::move(variables));
    std::vector<std::string> arguments = kSweep;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string out = run_good(arguments, folder).out;
    CAPTURE(out);
    CHECK(out.find(what) != std::string::npos);
  };
  says({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}, "many: rank 3 of 3: 10 scenarios: 10 simulated now");
  says({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}},
       "many: rank 1 of 3: 10 scenarios: 10 simulated now");
  // A batch script, which runs once; mpirun with one process; parts by hand.
  says({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}},
       "many: 30 scenarios in all.sqlite: 10 simulated now, 20 stored before");
  says({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, "many: 30 scenarios in all.sqlite: 0 simulated now");
  says({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "many: 6 scenarios in all.sqlite", {"--shard", "3/5"});
}

TEST_CASE("mpirun starts ranks") {
  if (std::system("command -v mpirun > /dev/null 2>&1") != 0) {
    WARN("mpirun is not installed (openmpi-bin): nothing is tested");
    return;
  }
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const std::string command = "cd '" + folder.path().string() +
                              "' && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "
                              "-n 4 '" EPOCAST_BINARY "' sweep study.yaml --store all.sqlite > out.txt 2> err.txt";
  const int status = std::system(command.c_str());
  CAPTURE(read_file(folder.path() / "out.txt"), read_file(folder.path() / "err.txt"));
  REQUIRE(status == 0);
  CHECK(read_file(folder.path() / "out.txt").find("many: all 30 scenarios in all.sqlite, 0 failed") !=
        std::string::npos);
  CHECK(rows(folder, "all.sqlite") == run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out);
}

}  // namespace epocast::rank_test
