// A trace must say what the timeline says: timelines are made by hand here, printed, parsed again, and compared. What a
// viewer needs beyond that is a property of every file: slices of one lane do not overlap, and each arrow starts inside
// one slice and ends inside another.
#include "experiments/chrome_trace.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sim/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::chrome_trace_test {

using nlohmann::json;

namespace {

Cluster cluster_of(int devices) {
  Cluster cluster{.name = "test", .description = "", .platform_file = "", .devices = {}, .sources = {}};
  for (int d = 0; d < devices; ++d)
    cluster.devices.push_back({.name = "node-" + std::to_string(d),
                               .node = "",
                               .model = "",
                               .peak_rate = {},
                               .memory_bandwidth = {},
                               .memory = {}});
  return cluster;
}

ExecutionResult result_of(std::vector<Interval> intervals, bool folded = false) {
  std::stable_sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.end < b.end; });
  ExecutionResult result;
  result.iterations_simulated = 1;
  result.folded = folded;
  result.timeline.intervals = std::move(intervals);
  return result;
}

std::uint32_t number(TaskId task) { return static_cast<std::uint32_t>(task); }

std::int64_t ns(const json& microseconds) { return std::llround(microseconds.get<double>() * 1e3); }

struct Slice {
  json event;
  std::string process, lane;
  std::int64_t start, end;  // ns

  std::string name() const { return event["name"]; }
  int pid() const { return event["pid"]; }
  int iteration() const { return event["args"]["iteration"]; }
  int rank() const { return event["args"]["rank"]; }
};

/// A parsed trace: what every viewer relies on has been checked.
struct Parsed {
  json document;
  std::vector<Slice> slices;
  std::vector<std::pair<Slice, Slice>> arrows;

  explicit Parsed(const ChromeTrace& trace) : document(json::parse(trace.text())) {
    CHECK(document["displayTimeUnit"] == "ms");
    std::map<int, std::string> processes;
    std::map<std::pair<int, int>, std::string> lanes;
    std::map<std::uint64_t, std::vector<json>> starts, finishes;
    for (const json& e : document["traceEvents"]) {
      const std::string phase = e.at("ph");
      if (phase == "M" && e["name"] == "process_name") CHECK(processes.emplace(e["pid"], e["args"]["name"]).second);
      if (phase == "M" && e["name"] == "thread_name")
        CHECK(lanes.emplace(std::pair<int, int>(e["pid"], e["tid"]), e["args"]["name"]).second);
      if (phase == "s") starts[e.at("id")].push_back(e);
      if (phase == "f") finishes[e.at("id")].push_back(e);
      if (phase == "f") CHECK(e.at("bp") == "e");
      if (phase != "X") continue;
      const std::pair<int, int> thread(e["pid"], e["tid"]);
      REQUIRE(processes.contains(thread.first));
      REQUIRE(lanes.contains(thread));
      slices.push_back({e, processes[thread.first], lanes[thread], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])});
    }

    for (const Slice& a : slices)
      for (const Slice& b : slices)
        if (&a != &b && a.event["tid"] == b.event["tid"] && a.event["pid"] == b.event["pid"])
          CHECK((a.end <= b.start || b.end <= a.start));

    // The slice that an event is in; at a common border the one that begins there.
    const auto enclosing = [&](const json& e) -> const Slice& {
      const Slice* found = nullptr;
      for (const Slice& s : slices)
        if (s.event["tid"] == e["tid"] && s.event["pid"] == e["pid"] && s.start <= ns(e["ts"]) &&
            ns(e["ts"]) <= s.end && (found == nullptr || s.start >= found->start))
          found = &s;
      REQUIRE(found != nullptr);
      return *found;
    };
    CHECK(starts.size() == finishes.size());
    for (const auto& [id, ends] : starts) {
      REQUIRE(ends.size() == 1);
      REQUIRE(finishes[id].size() == 1);
      const Slice &from = enclosing(ends[0]), &to = enclosing(finishes[id][0]);
      CHECK(ns(ends[0]["ts"]) < std::max(from.end, from.start + 1));  // at its end a slice is over
      CHECK(ns(finishes[id][0]["ts"]) == to.start);
      CHECK(ns(ends[0]["ts"]) <= to.start);
      arrows.emplace_back(from, to);
    }
  }

  std::vector<Slice> named(const std::string& name) const {
    std::vector<Slice> out;
    std::copy_if(slices.begin(), slices.end(), std::back_inserter(out),
                 [&](const Slice& s) { return s.name() == name; });
    return out;
  }
  /// "name/rank/iteration -> name/rank/iteration" of all arrows.
  std::multiset<std::string> arrow_texts() const {
    const auto text = [](const Slice& s) {
      return s.name() + "/" + std::to_string(s.rank()) + "/" + std::to_string(s.iteration());
    };
    std::multiset<std::string> out;
    for (const auto& [from, to] : arrows) out.insert(text(from) + " -> " + text(to));
    return out;
  }
  std::string notes() const { return document["otherData"]["notes"].dump(); }
};

/// Backward pass, all-reduce, update: on 3 workers. Iteration k of rank r takes from 10 k to 10 k + 7.
struct DataParallelStep {
  CyclicTaskGraph graph;
  TaskId backward, all_reduce, update;

  DataParallelStep() {
    const GroupId workers = graph.add_group("workers", {0, 1, 2});
    const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
    const QueueId network = graph.add_queue("network", workers, QueueRole::communication, Discipline::fifo);
    backward = graph.compute(compute, Seconds(2), {"backward", "fc\"6\"", 1});
    all_reduce = graph.collective(network, {.group = workers, .bytes = Bytes(4096)}, {"all-reduce", "fc6"});
    update = graph.compute(compute, Seconds(1), {"update", "fc6"});
    graph.after(backward, all_reduce);
    graph.after(all_reduce, update);
  }

  std::vector<Interval> intervals(std::uint32_t ranks) const {
    std::vector<Interval> out;
    for (std::int64_t k = 0; k < 2; ++k) {
      const double t = 10.0 * static_cast<double>(k);
      for (std::uint32_t r = 0; r < ranks; ++r) out.push_back({number(backward), r, k, t, t + 2});
      out.push_back({number(all_reduce), 0, k, t + 2, t + 6});
      for (std::uint32_t r = 0; r < ranks; ++r) out.push_back({number(update), r, k, t + 6, t + 7});
    }
    return out;
  }
};

}  // namespace

TEST_CASE("a collective shows on every rank's communication lane, with arrows rank by rank", "[trace]") {
  const DataParallelStep step;
  ChromeTrace trace;
  trace.add(step.graph, cluster_of(3), result_of(step.intervals(3)), 0);
  const Parsed parsed(trace);

  CHECK(parsed.slices.size() == 2 * 3 * 3);
  std::set<std::tuple<std::string, std::string, int, int>> seen;
  for (const Slice& s : parsed.slices) {
    CHECK(s.pid() == s.rank());
    CHECK(s.process == "node-" + std::to_string(s.rank()) + " (worker " + std::to_string(s.rank()) + ")");
    seen.insert({s.name(), s.lane, s.rank(), s.iteration()});
  }
  for (int k = 0; k < 2; ++k)
    for (int r = 0; r < 3; ++r) {
      CHECK(seen.contains({"backward fc\"6\" #1", "compute", r, k}));
      CHECK(seen.contains({"all-reduce fc6", "communication", r, k}));
      CHECK(seen.contains({"update fc6", "compute", r, k}));
    }

  const Slice reduce = parsed.named("all-reduce fc6").front();
  CHECK(reduce.event["cat"] == "communication");
  CHECK(reduce.event["args"]["bytes"] == 4096);
  CHECK(reduce.event["args"]["operation"] == "all-reduce");
  CHECK(reduce.event["args"]["layer"] == "fc6");
  CHECK_FALSE(reduce.event["args"].contains("micro_batch"));
  CHECK((reduce.start == 2'000'000'000 && reduce.end == 6'000'000'000));
  const Slice backward = parsed.named("backward fc\"6\" #1").front();
  CHECK(backward.event["args"]["micro_batch"] == 1);
  CHECK_FALSE(backward.event["args"].contains("bytes"));

  // Two edges, three ranks, two iterations.
  CHECK(parsed.arrows.size() == 12);
  for (const auto& [from, to] : parsed.arrows) {
    CHECK(from.pid() == to.pid());
    CHECK(from.iteration() == to.iteration());
  }
  CHECK(parsed.arrow_texts().count("all-reduce fc6/2/1 -> update fc6/2/1") == 1);
  CHECK(parsed.notes() == "[]");
}

TEST_CASE("a folded result shows one worker and says for how many it stands", "[trace]") {
  const DataParallelStep step;
  ChromeTrace trace;
  trace.add(step.graph, cluster_of(3), result_of(step.intervals(1), true), 0);
  const Parsed parsed(trace);
  CHECK(parsed.slices.size() == 6);
  CHECK(parsed.arrows.size() == 4);
  for (const Slice& s : parsed.slices) CHECK(s.process == "node-0 (worker 0, stands for 3 interchangeable workers)");
  CHECK_THAT(parsed.notes(), Catch::Contains("folded"));
}

TEST_CASE("transfers that overlap get lanes of their own, a server's work its own process", "[trace]") {
  // Two workers push a tensor each of two layers at once; one server accumulates in turn, updates, and the update lets
  // the pulls of the next iteration go.
  CyclicTaskGraph graph;
  const GroupId workers = graph.add_group("workers", {0, 1});
  const GroupId server = graph.add_group("server", {2});
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  const QueueId cpu = graph.add_queue("server", server, QueueRole::server, Discipline::fifo);
  const TaskId pull = graph.transfer(workers, QueueId::none, {server, workers, Bytes(8)}, {"pull", "a"});
  const TaskId forward = graph.compute(compute, Seconds(1), {"forward", "a"});
  const TaskId push_a = graph.transfer(workers, QueueId::none, {workers, server, Bytes(8)}, {"push", "a"});
  const TaskId push_b = graph.transfer(workers, QueueId::none, {workers, server, Bytes(0.5)}, {"push", "b"});
  const TaskId sum = graph.compute_for(workers, cpu, Seconds(1), {"accumulate", "a"});
  const TaskId update = graph.compute(cpu, Seconds(1), {"update", "a"});
  graph.after(pull, forward);
  graph.after(forward, push_a);
  graph.after(forward, push_b);
  graph.after(push_a, sum);
  graph.after(sum, update);
  graph.after(update, pull, 1);

  std::vector<Interval> intervals;
  for (std::uint32_t r = 0; r < 2; ++r) {
    intervals.push_back({number(pull), r, 0, 0, 1});
    intervals.push_back({number(forward), r, 0, 1, 2});
    intervals.push_back({number(push_a), r, 0, 2, 4});
    intervals.push_back({number(push_b), r, 0, 2, 3});
    intervals.push_back({number(sum), r, 0, 4.0 + r, 5.0 + r});
    intervals.push_back({number(pull), r, 1, 7, 8});
  }
  intervals.push_back({number(update), 0, 0, 6, 7});
  ChromeTrace trace;
  trace.add(graph, cluster_of(3), result_of(intervals), 0);
  const Parsed parsed(trace);

  CHECK(parsed.slices.size() == intervals.size());
  std::set<std::string> lanes;
  for (const char* push : {"push a", "push b"})
    for (const Slice& s : parsed.named(push)) lanes.insert(s.process + ": " + s.lane);
  CHECK(lanes == std::set<std::string>{"node-0 (worker 0): communication", "node-0 (worker 0): communication 2",
                                       "node-1 (worker 1): communication", "node-1 (worker 1): communication 2"});
  CHECK(parsed.named("push b").front().event["args"]["bytes"] == 0.5);
  for (const Slice& s : parsed.named("accumulate a")) {
    CHECK(s.process == "node-2 (server 0)");
    CHECK(s.lane == "server");
    CHECK(s.event["cat"] == "server");
  }
  CHECK(parsed.named("accumulate a").size() == 2);

  // accumulate -> update stays on the server's lane; update -> pull fans out, an iteration later.
  CHECK(parsed.arrow_texts() == std::multiset<std::string>{"pull a/0/0 -> forward a/0/0", "pull a/1/0 -> forward a/1/0",
                                                           "forward a/0/0 -> push a/0/0", "forward a/1/0 -> push a/1/0",
                                                           "forward a/0/0 -> push b/0/0", "forward a/1/0 -> push b/1/0",
                                                           "push a/0/0 -> accumulate a/0/0",
                                                           "push a/1/0 -> accumulate a/1/0",
                                                           "update a/0/0 -> pull a/0/1", "update a/0/0 -> pull a/1/1"});
}

TEST_CASE("an edge that joins all ranks has an arrow from each", "[trace]") {
  CyclicTaskGraph graph;
  const GroupId workers = graph.add_group("workers", {0, 1, 2});
  const GroupId last = graph.add_group("last", {3});
  const QueueId many = graph.add_queue("compute", workers, QueueRole::compute, Discipline::fifo);
  const QueueId one = graph.add_queue("compute", last, QueueRole::compute, Discipline::fifo);
  const TaskId part = graph.compute(many, Seconds(1), {"part", ""});
  const TaskId whole = graph.compute(one, Seconds(0), {"whole", ""});
  graph.after(part, whole);
  std::vector<Interval> intervals;
  for (std::uint32_t r = 0; r < 3; ++r) intervals.push_back({number(part), r, 0, 0, 1e-10 + r});
  intervals.push_back({number(whole), 0, 0, 2 + 1e-10, 2 + 1e-10});  // takes no time, as does the first part in ns
  ChromeTrace trace;
  trace.add(graph, cluster_of(4), result_of(intervals), 0);
  CHECK(Parsed(trace).arrow_texts() ==
        std::multiset<std::string>{"part/0/0 -> whole/0/0", "part/1/0 -> whole/0/0", "part/2/0 -> whole/0/0"});
}

TEST_CASE("phases follow each other, each with its name", "[trace]") {
  const DataParallelStep step;
  ExecutionResult first = result_of(step.intervals(3)), second = result_of(step.intervals(1), true);
  second.timeline.truncated = true;
  first.totals.makespan = 17;
  first.total = 100;
  ChromeTrace trace;
  trace.add(step.graph, cluster_of(3), first, 0);
  CHECK_THAT(trace.text(), !Catch::Contains("phase 1 starts"));  // nothing to tell apart yet
  trace.add(step.graph, cluster_of(3), second, 100);
  const Parsed parsed(trace);

  CHECK(parsed.slices.size() == 18 + 6);
  CHECK(parsed.arrows.size() == 12 + 4);  // none from phase to phase
  CHECK(parsed.slices.back().start == 116'000'000'000);
  CHECK(parsed.slices[0].process == "node-0 (worker 0, stands for 1 to 3 interchangeable workers)");
  std::map<std::string, std::int64_t> instants;
  for (const json& e : parsed.document["traceEvents"])
    if (e["ph"] == "i") instants[e["name"]] = ns(e["ts"]);
  CHECK(instants == std::map<std::string, std::int64_t>{{"phase 1 starts", 0}, {"phase 2 starts", 100'000'000'000}});
  CHECK_THAT(parsed.notes(), Catch::Contains("phase 2: truncated: only the first 6 executions"));
  CHECK_THAT(parsed.notes(), Catch::Contains("phase 1: only the 1 simulated iterations are shown"));
}

TEST_CASE("times keep their nanoseconds and lanes do not overlap by rounding", "[trace]") {
  CyclicTaskGraph graph;
  const GroupId worker = graph.add_group("worker", {0});
  const QueueId compute = graph.add_queue("compute", worker, QueueRole::compute, Discipline::program_order);
  const TaskId work = graph.compute(compute, Seconds(1), {"work", ""});
  std::vector<Interval> intervals;
  double t = 0;
  for (std::int64_t k = 0; k < 100; ++k) {
    const double end = t + 1.0 / 3e6;  // 333.3 ns
    intervals.push_back({number(work), 0, k, t, end});
    t = end;
  }
  ChromeTrace trace;
  trace.add(graph, cluster_of(1), result_of(intervals), 3600);
  const Parsed parsed(trace);
  REQUIRE(parsed.slices.size() == 100);
  for (const Slice& s : parsed.slices) CHECK(s.lane == "compute");  // one lane is enough
  CHECK(parsed.slices[1].start == 3'600'000'000'333);
  CHECK(parsed.slices[99].end == 3'600'000'033'333);
}

TEST_CASE("arrows stop at their limit and the trace says so", "[trace]") {
  if (EPOCAST_SANITIZED) return;  // 200,000 of what the tests above have a few of
  CyclicTaskGraph graph;
  const GroupId one = graph.add_group("one", {0}), other = graph.add_group("other", {1});
  const TaskId make =
      graph.compute(graph.add_queue("q", one, QueueRole::compute, Discipline::fifo), Seconds(1), {"make", ""});
  const TaskId use =
      graph.compute(graph.add_queue("q", other, QueueRole::compute, Discipline::fifo), Seconds(1), {"use", ""});
  graph.after(make, use);
  std::vector<Interval> intervals;
  for (std::int64_t k = 0; k < 200'001; ++k) {
    const auto t = static_cast<double>(k);
    intervals.push_back({number(make), 0, k, t, t + 1});
    intervals.push_back({number(use), 0, k, t + 1, t + 2});
  }
  ChromeTrace trace;
  trace.add(graph, cluster_of(2), result_of(std::move(intervals)), 0);
  const std::string text = trace.text();
  std::size_t arrows = 0;
  for (std::size_t at = 0; (at = text.find("\"ph\":\"s\"", at)) != std::string::npos; ++at) ++arrows;
  CHECK(arrows == 200'000);
  CHECK_THAT(text.substr(0, 300), Catch::Contains("only the first 200000 arrows"));
}

TEST_CASE("a trace without slices is still a trace", "[trace]") {
  CHECK(Parsed(ChromeTrace()).slices.empty());
  const DataParallelStep step;
  ChromeTrace trace;
  trace.add(step.graph, cluster_of(3), result_of({}), 0);
  CHECK(Parsed(trace).slices.empty());
}

TEST_CASE("a trace file is written whole or not at all", "[trace]") {
  namespace fs = std::filesystem;
  const testing::TemporaryFolder files;
  const fs::path folder = files.path();
  const DataParallelStep step;
  ChromeTrace trace;
  trace.add(step.graph, cluster_of(3), result_of(step.intervals(3)), 0);

  const fs::path file = files.write("trace.json", "old");
  trace.write(file);
  std::ifstream in(file);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == trace.text());
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);  // no temporary file stays

  CHECK_THROWS_AS(trace.write(folder / "missing" / "trace.json"), ConfigError);
  CHECK_THROWS_WITH(trace.write(folder / "missing" / "trace.json"),
                    Catch::Contains("missing/trace.json") && Catch::Contains("No such file"));
  CHECK_THROWS_WITH(trace.write(folder), Catch::Contains(folder.string()));
  CHECK_THROWS_WITH(trace.write("/dev/full"), Catch::Contains("/dev/full") && Catch::Contains("No space left"));

  fs::create_symlink(file, folder / "link.json");
  trace.write(folder / "link.json");
  CHECK(fs::is_symlink(folder / "link.json"));
}

}  // namespace epocast::chrome_trace_test
