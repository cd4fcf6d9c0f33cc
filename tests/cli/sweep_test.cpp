// A sweep may be stopped and started at will, and ends with every scenario once and each as `run` gives it.

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/cli/program.hpp"

namespace epocast::sweep_test {

using namespace epocast::test;

namespace {

const std::string kStudy =
    "study: many\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\ndataset: {samples: 6400}\nsweep:\n"
    "  workers: [1, 2, 4]\n  batch.per_worker: {from: 10, to: 19, step: 1}\n  strategy: [data_parallel, "
    "parameter_server]\n";
constexpr int kScenarios = 60;

// Each takes some hundredths of a second.
const std::string kSlowStudy =
    "study: slow\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\nworkers: 16\n"
    "strategy: {name: parameter_server, mode: async}\nnoise: {compute_cv: 0.1}\n"
    "dataset: {samples: 20000}\nsweep: {batch.per_worker: {from: 31, to: 70, step: 1}}\n";
constexpr int kSlowScenarios = 40;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string rows(const TemporaryFolder& folder, const std::string& store, const std::string& where = "") {
  std::vector<std::string> arguments{"results", store, "--format", "jsonl"};
  if (!where.empty()) arguments.insert(arguments.end(), {"--where", where});
  return run_good(arguments, folder).out;
}

/// Processes of a session other than the first.
std::vector<int> children_of_session(int session) {
  std::vector<int> found = processes_of_session(session);
  std::erase(found, session);
  return found;
}

/// Sweeps while something is killed now and then, until a sweep ends by itself.
void sweep_under_fire(int kills, unsigned seed) {
  const TemporaryFolder folder;
  folder.write("study.yaml", kSlowStudy);
  const std::string calm = run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out;
  std::mt19937 random(seed);
  int killed = 0;
  while (true) {
    RunningProgram program({"sweep", "study.yaml", "--jobs", "2"}, folder.path(), {.own_session = true});
    const int session = program.process();
    for (; killed < kills && !program.has_ended(); ++killed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
      const std::vector<int> children = children_of_session(session);
      if (random() % 3 == 0) kill(session, SIGKILL);
      if (random() % 3 != 0 && !children.empty()) kill(children[random() % children.size()], SIGKILL);
    }
    const ProgramRun run = program.finish();
    if (run.signal == SIGKILL || run.exit_code == 1) continue;  // goes on with what was killed twice
    CAPTURE(run.err, run.out);
    REQUIRE(run.exit_code == 0);
    if (killed >= kills) break;
    std::filesystem::remove(folder.path() / "study.sqlite");  // again, for those that are left
  }
  const ProgramRun again = run_good({"sweep", "study.yaml"}, folder);
  CHECK(again.out.find("0 simulated now, " + std::to_string(kSlowScenarios) + " stored before, 0 failed") !=
        std::string::npos);
  CHECK(sorted_lines(rows(folder, "study.sqlite")) == sorted_lines(calm));
}

}  // namespace

TEST_CASE("a sweep gives what run gives, and then has nothing left to do") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun first = run_good({"sweep", "study.yaml", "--store", "all.sqlite"}, folder);
  CHECK(first.out == "many: 60 scenarios in all.sqlite: 60 simulated now, 0 stored before, 0 failed\n");
  CHECK(run_good({"sweep", "study.yaml", "--store", "all.sqlite"}, folder).out ==
        "many: 60 scenarios in all.sqlite: 0 simulated now, 60 stored before, 0 failed\n");
  // In order, and digit by digit.
  CHECK(rows(folder, "all.sqlite") == run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out);

  // One more value: only what is new.
  const ProgramRun more =
      run_good({"sweep", "study.yaml", "--store", "all.sqlite", "--set", "sweep.workers=[1, 2, 4, 8]"}, folder);
  CHECK(more.out == "many: 80 scenarios in all.sqlite: 20 simulated now, 60 stored before, 0 failed\n");
  // Other text, same scenarios.
  folder.write("study.yaml", "# nothing new\ndescription: none\n" + kStudy);
  CHECK(run_good({"sweep", "study.yaml", "--store", "all.sqlite"}, folder).out.find("0 simulated now") !=
        std::string::npos);
  // Everything depends on the data set.
  CHECK(run_good({"sweep", "study.yaml", "--store", "all.sqlite", "--set", "dataset.samples=12800"}, folder)
            .out.find("60 simulated now") != std::string::npos);
}

TEST_CASE("a sweep notices files that change, and that they change back") {
  const TemporaryFolder folder;
  const std::string model = read_file(std::filesystem::path(EPOCAST_SOURCE_DIR) / "workloads/models/mlp_mnist.yaml");
  folder.write("mine.yaml", model);
  folder.write("study.yaml", "study: mine\nplatform: skylake_10gbe\nmodel: ./mine.yaml\nsweep: {workers: [1, 2]}\n");
  const auto simulated = [&] {
    const std::string out = run_good({"sweep", "study.yaml"}, folder).out;
    return out.substr(out.find(": ", out.find("sqlite")) + 2, 1);
  };
  CHECK(simulated() == "2");
  CHECK(simulated() == "0");
  folder.write("mine.yaml", model + "\n# another file, if not another network\n");
  CHECK(simulated() == "2");
  folder.write("mine.yaml", model);
  CHECK(simulated() == "0");
  const std::string listed = run_good({"results", "study.sqlite", "--runs"}, folder).out;
  CHECK(split(listed, '\n').size() == 4);  // a head and three runs
}

TEST_CASE("shards make one store, whatever their order") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  for (const char* part : {"3", "1", "2"})
    run_good({"sweep", "study.yaml", "--shard", std::string(part) + "/3", "--store",
              std::string("part-") + part + ".sqlite"},
             folder);
  const ProgramRun merged =
      run_good({"results", "merge", "all.sqlite", "part-1.sqlite", "part-3.sqlite", "part-2.sqlite"}, folder);
  CHECK(merged.out == "part-1.sqlite: 20 rows new\npart-3.sqlite: 20 rows new\npart-2.sqlite: 20 rows new\n");
  CHECK(rows(folder, "all.sqlite") == run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out);
  CHECK(run_good({"sweep", "study.yaml", "--store", "all.sqlite"}, folder).out.find("0 simulated now, 60 stored") !=
        std::string::npos);
  CHECK(run_good({"results", "merge", "all.sqlite", "part-1.sqlite"}, folder).out == "part-1.sqlite: 0 rows new\n");
}

TEST_CASE("results are filtered, chosen and compared") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  run_good({"sweep", "study.yaml", "--store", "old.sqlite"}, folder);
  CHECK(split(rows(folder, "old.sqlite", "workers = 4 and batch.per_worker > 17 and strategy = 'data_parallel'"), '\n')
            .size() == 2);
  CHECK(split(rows(folder, "old.sqlite", "fits_memory and samples_per_s > 0 and error = ''"), '\n').size() ==
        kScenarios);
  CHECK(run_good({"results", "old.sqlite", "--columns", "workers, global_batch", "--format", "csv", "--where",
                  "workers = 2 and batch.per_worker = 10 and strategy like 'data%'"},
                 folder)
            .out == "workers,global_batch\n2,20\n");
  // The store knows its axes, whether or not a row meets the condition.
  CHECK(run_good({"results", "old.sqlite", "--columns", "batch.per_worker,total_s", "--format", "csv", "--where",
                  "workers > 99"},
                 folder)
            .out == "batch.per_worker,total_s\n");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const ProgramRun run = run_program(arguments, folder.path());
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(why) != std::string::npos);
  };
  refused({"results", "old.sqlite", "--where", "wrokers = 2"}, "no column 'wrokers' (did you mean 'workers'?)");
  refused({"results", "old.sqlite", "--where", "1; DROP TABLE results"}, "--where");
  refused({"results", "old.sqlite", "--where", "total_s > '2 ms'"}, "compares total_s, a number, with '2 ms', a time");
  refused({"results", "old.sqlite", "--where", "1) FROM results; --"}, "--where");
  refused({"results", "old.sqlite", "--columns", "wrokers"}, "did you mean 'workers'?");
  refused({"results", "none.sqlite"}, "none.sqlite: no such file");
  refused({"results", "old.sqlite", "--run", "7"}, "old.sqlite: has no run 7; `results old.sqlite --runs` lists");
  refused({"results", "old.sqlite", "--against", "7"}, "old.sqlite: has no run 7");
  refused({"results", "old.sqlite", "--against", "old.sqlite:7"}, "old.sqlite: has no run 7");
  refused({"results", "old.sqlite", "--against", "0"}, "--against 0: runs have numbers from 1 on");
  refused({"results", "study.yaml"}, "study.yaml: is no store of results");

  CHECK(run_good({"results", "old.sqlite", "--against", "old.sqlite"}, folder).out ==
        "60 rows compared, 0 differences, 0 worse\n");
  // Half of the network's speed makes nothing faster.
  run_good({"sweep", "study.yaml", "--store", "new.sqlite", "--set", "network.efficiency=0.5"}, folder);
  const ProgramRun worse =
      run_program({"results", "new.sqlite", "--against", "old.sqlite", "--fail-on", "iteration_s 1 %"}, folder.path());
  CHECK(worse.exit_code == 1);
  CHECK(worse.out.find("worse  many") != std::string::npos);
  // Numbers as people read them, and no text that makes every line long.
  for (const std::string& line : split(worse.out, '\n')) {
    CAPTURE(line);
    CHECK(line.find_first_of('"') == std::string::npos);
    if (line.starts_with("worse")) CHECK(line.size() < 160);
  }
  const auto against = [&](const std::string& format) {
    return run_program({"results", "new.sqlite", "--against", "old.sqlite", "--columns", "iteration_s,limited_by",
                        "--format", format, "--fail-on", "iteration_s 1 %"},
                       folder.path());
  };
  for (const ProgramRun& run : {against("json"), against("jsonl")}) {
    CHECK(run.exit_code == 1);
    const bool lines = run.out.starts_with('{');
    std::string list = run.out;
    if (lines) std::ranges::replace(list, '\n', ',');
    if (lines) list = '[' + list.substr(0, list.size() - 1) + ']';
    const auto rows = nlohmann::json::parse(list);
    REQUIRE_FALSE(rows.empty());
    for (const nlohmann::json& row : rows) {
      CHECK((row.at("column") == "iteration_s" || row.at("column") == "limited_by"));
      if (row.at("worse") == true) CHECK(row.at("after").get<double>() > row.at("before").get<double>());
    }
  }
  CHECK(against("csv").out.starts_with("worse,study,scenario,column,before,after\n"));
  CHECK(against("markdown").out.starts_with("|  | study |"));
  CHECK(against("table").out.find("samples_per_s") == std::string::npos);
  refused({"results", "new.sqlite", "--against", "old.sqlite", "--columns", "wrokers"}, "did you mean 'workers'?");
  CHECK(run_good({"results", "old.sqlite", "--against", "new.sqlite", "--fail-on", "iteration_s", "--fail-on",
                  "samples_per_s 0.1%"},
                 folder)
            .out.find(" 0 worse") != std::string::npos);
  refused({"results", "new.sqlite", "--against", "old.sqlite", "--fail-on", "iteration 1 %"},
          "did you mean 'iteration_s'?");
  refused({"results", "new.sqlite", "--against", "old.sqlite", "--fail-on", "limited_by"}, "holds words");
  refused({"results", "new.sqlite", "--against", "old.sqlite", "--fail-on", "iteration_s 1"},
          "--fail-on wants a column");
}

TEST_CASE("what fitted into memory and does not any more is worse") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: fits\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 2\n");
  run_good({"sweep", "study.yaml", "--store", "was.sqlite"}, folder);
  run_good({"sweep", "study.yaml", "--store", "is.sqlite", "--set", "memory.reserve=1 PB"}, folder);
  const auto compared = [&](const std::string& is, const std::string& was) {
    return run_program({"results", is, "--against", was, "--fail-on", "fits_memory"}, folder.path()).exit_code;
  };
  CHECK(compared("is.sqlite", "was.sqlite") == 1);
  CHECK(compared("was.sqlite", "is.sqlite") == 0);
}

TEST_CASE("a scenario that cannot be is a row with its message, and so is one beyond its limits") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: bad\nplatform: skylake_10gbe\nmodel: mlp_mnist\nsweep: {workers: [1, 1000, 2]}\n");
  const ProgramRun run = run_program({"sweep", "study.yaml"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.out.find("3 simulated now, 0 stored before, 1 failed") != std::string::npos);
  CHECK(run.err.find("1000 workers, but platform") != std::string::npos);
  CHECK(run_program({"sweep", "study.yaml"}, folder.path()).exit_code == 2);  // it still is
  CHECK(split(rows(folder, "study.sqlite", "error like '%1000 workers%'"), '\n').size() == 1);

  folder.write("slow.yaml", kSlowStudy + "# one\n");
  const std::vector<std::string> one{
      "sweep", "slow.yaml", "--exact", "--set", "sweep.batch.per_worker=[31]", "--set", "dataset.samples=20000000"};
  std::vector<std::string> limited = one;
  limited.insert(limited.end(), {"--time-limit", "200 ms"});
  const ProgramRun late = run_program(limited, folder.path());
  CAPTURE(late.err);
  CHECK(late.exit_code == 1);
  CHECK(late.err.find("took longer than 200.0 ms; raise --time-limit") != std::string::npos);
  CHECK(run_program(limited, folder.path()).out.find("0 simulated now, 1 stored before, 1 failed") !=
        std::string::npos);
  limited.push_back("--retry");
  CHECK(run_program(limited, folder.path()).out.find("1 simulated now") != std::string::npos);
}

TEST_CASE("a dry run says what there is to do, and does nothing") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun run = run_good({"sweep", "study.yaml", "--dry-run"}, folder);
  CHECK(run.out.find("many: 60 scenarios, 0 of them in study.sqlite, 60 to simulate\nabout ") == 0);
  CHECK(folder.names() == std::vector<std::string>{"study.yaml"});
  // And what is wrong, if anything is.
  const ProgramRun wrong =
      run_program({"sweep", "study.yaml", "--dry-run", "--set", "sweep={wrokers: [1, 2]}"}, folder.path());
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("unknown key 'wrokers' (did you mean 'workers'?)") != std::string::npos);
}

TEST_CASE("a sweep runs strategies with the software that run runs them with") {
  const TemporaryFolder folder;
  folder.write("gpus.yaml",
               "study: gpus\nplatform: dgx1_v100\nmodel: resnet50\ndataset: {samples: 6400}\nbatch: {per_worker: 16}\n"
               "sweep: {workers: [2, 8], strategy: [ddp, zero3, layerwise_data_parallel]}\n");
  run_good({"sweep", "gpus.yaml"}, folder);
  const std::string stored = rows(folder, "gpus.sqlite");
  CHECK(stored == run_good({"run", "gpus.yaml", "--format", "jsonl"}, folder).out);
  for (const char* stack : {"pytorch_ddp", "deepspeed", "ideal"})
    CHECK(stored.find("\"stack\":\"" + std::string(stack) + "\"") != std::string::npos);
}

TEST_CASE("scenarios that share a process do not notice each other") {
  const TemporaryFolder folder;
  // Between them: flows that the simulator shares and flows that it does not, noise, links that change, scenarios that
  // fail before and after.
  folder.write("all.yaml",
               "study: all\nplatform: skylake_10gbe\nstack: ideal\nmodel: vgg16\nworkers: 4\ndataset: {samples: 6400}\n"
               "sweep:\n  noise.compute_cv: [0, 0.1]\n  degraded_links:\n    - []\n"
               "    - [{worker: 1, slowdown: 3, from: 1 s, until: 9 s}]\n  strategy:\n"
               "    - single\n    - data_parallel\n    - {name: data_parallel, granularity: layer}\n    - fsdp\n"
               "    - local_sgd\n    - gossip\n    - gpipe\n    - easgd\n    - {name: parameter_server, mode: sync}\n"
               "    - {name: parameter_server, mode: async, servers: 2}\n    - {name: pipeline, stages: 99}\n");
  const ProgramRun run = run_program({"sweep", "all.yaml", "--jobs", "1"}, folder.path());
  CAPTURE(run.err, run.out);
  CHECK(run.exit_code == 2);
  CHECK(run.out.find("all: 44 scenarios in all.sqlite: 44 simulated now") == 0);
  CHECK(rows(folder, "all.sqlite") == run_program({"run", "all.yaml", "--format", "jsonl"}, folder.path()).out);
}

TEST_CASE("stores that cannot be used say why") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const auto refused = [&](const std::string& store, const std::string& why) {
    const ProgramRun run = run_program({"sweep", "study.yaml", "--store", store}, folder.path());
    CAPTURE(run.err, run.out);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(why) != std::string::npos);
  };
  refused("nowhere/x.sqlite", "nowhere/x.sqlite: cannot be written: No such file or directory");
  refused("study.yaml", "study.yaml: is no store of results; name another file");
  refused("/sys/x.sqlite", "/sys/x.sqlite: cannot be written: ");  // where even root may write nothing

  run_good({"sweep", "study.yaml", "--store", "s.sqlite", "--set", "sweep={workers: [1, 2]}"}, folder);
  const std::string good = read_file(folder.path() / "s.sqlite");
  std::string newer = good;
  newer[63] = 9;  // the last byte of user_version (SQLite's file format, 1.3)
  folder.write("newer.sqlite", newer);
  refused("newer.sqlite", "is a store of a newer epocast (format 9, this one knows 1)");
  std::string damaged = good;
  for (std::size_t at = 4096 + 8; at < damaged.size(); at += 64) damaged[at] = '\x55';
  folder.write("damaged.sqlite", damaged);
  refused("damaged.sqlite", "is damaged");

  RunningProgram slow({"sweep", "study.yaml", "--store", "s.sqlite", "--exact", "--set", "dataset.samples=60000000"},
                      folder.path());
  // Its lock's file is there a moment before it is locked; what it writes is not.
  while (!std::filesystem::exists(folder.path() / "s.sqlite-wal") && !slow.has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  refused("s.sqlite", "another sweep writes to it");
  kill(slow.process(), SIGTERM);
  slow.finish();
  // What was there before is safe; what is listed unasked is the last run, which may have had time for nothing.
  const ProgramRun before = run_good({"results", "s.sqlite", "--run", "1", "--format", "jsonl"}, folder);
  CHECK(split(before.out, '\n').size() == 2);
}

TEST_CASE("whatever is killed, a sweep ends with every scenario once and as it is") { sweep_under_fire(12, 1); }

TEST_CASE("two hundred kills, and every scenario once and as it is", "[long]") { sweep_under_fire(200, 2); }

}  // namespace epocast::sweep_test
