// A step of many micro-batches, told by two of fewer, is what simulating all of it gives.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/execution_archive.hpp"
#include "sim/long_step.hpp"
#include "sim/recurrence.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::long_step_test {

using testing::compile_transformer;
using testing::small_transformer;

namespace {

/// The whole step's result and, if others tell, what they do.
std::vector<ExecutionResult> whole_and_told(const Cluster& cluster, const TrainingStep& whole, TrainingStep shortened,
                                            const std::function<TrainingStep(int)>& of_size) {
  return testing::unpack(testing::in_child([&] {
    SimEngine engine(cluster);
    const ExecutionOptions how{.iterations = 50};
    std::vector<ExecutionResult> results{execute(whole.graph, cluster, engine, how)};
    if (const auto told = ShorterSteps(of_size, cluster, engine, how).tell(shortened)) {
      results.push_back(*told);
      for (std::size_t k = 0; k < told->bound->tasks.size(); ++k) {
        const std::uint32_t task = told->bound->tasks[k];
        const bool is_there = task < shortened.graph.tasks().size();
        const auto* compute = is_there ? std::get_if<Compute>(&shortened.graph.tasks()[task].work) : nullptr;
        if (!is_there || (compute != nullptr && compute->duration.longest().value != told->bound->durations[k]))
          throw std::logic_error("the bound is of other tasks");
      }
    }
    Archive archive;
    archive(results);
    return archive.bytes();
  }));
}

void check_alike(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-9));
}

void check_alike(const ExecutionResult& told, const ExecutionResult& whole) {
  CHECK(told.exact);
  CHECK(told.iteration == Approx(whole.iteration).epsilon(1e-9));
  CHECK(told.total == Approx(whole.total).epsilon(1e-9));
  // Dates are rounded, and what is short beside them is the sum of their differences.
  const double rounding = 1e-11 * whole.iteration;
  CHECK(told.metrics.compute == Approx(whole.metrics.compute).epsilon(1e-9).margin(rounding));
  CHECK(told.metrics.communication == Approx(whole.metrics.communication).epsilon(1e-9));
  CHECK(told.metrics.exposed_communication == Approx(whole.metrics.exposed_communication).epsilon(1e-9));
  CHECK(told.metrics.bytes == Approx(whole.metrics.bytes).epsilon(1e-9));
  CHECK(told.metrics.max_link_utilization == Approx(whole.metrics.max_link_utilization).epsilon(1e-9));
  CHECK(told.bound->seconds <= whole.bound->seconds * (1 + 1e-9));
  check_alike(told.totals.sent, whole.totals.sent);
  check_alike(told.totals.received, whole.totals.received);
  check_alike(told.totals.on_link, whole.totals.on_link);
  CHECK(told.totals.makespan == Approx(whole.totals.makespan).epsilon(1e-9));
  for (std::size_t d = 0; d < told.totals.activity.size(); ++d)
    CHECK(told.totals.activity[d].compute() ==
          Approx(whole.totals.activity[d].compute()).epsilon(1e-9).margin(rounding));
}

/// A step of tasks that differ in the micro-batch only, with ends as given [s], after one iteration of so many seconds.
struct MadeUp {
  CyclicTaskGraph graph;
  ExecutionResult result;

  explicit MadeUp(double iteration) {
    result.iteration = iteration;
    result.iterations_simulated = 1;
    result.period = Period{1, iteration};
    result.folded = result.exact = true;
    graph.add_group("device", {0});
  }
  MadeUp& add(const std::string& name, const std::vector<double>& ends) {
    for (const double end : ends) {
      graph.compute_for(GroupId(0), QueueId::none, Seconds(1), {name, ""});
      result.ends.push_back(end);
    }
    return *this;
  }
};

bool tell(const MadeUp& shorter, const MadeUp& longer) {
  const testing::Star star(2, 1e9, 0);
  return testing::in_child([&] {
           const SimEngine engine(star.cluster());
           const auto told = long_step({shorter.graph, shorter.result}, {longer.graph, longer.result}, 10, engine);
           return std::string(told ? "yes" : "no");
         }) == "yes";
}

}  // namespace

TEST_CASE("two steps of fewer micro-batches tell what the whole one gives", "[long_step]") {
  constexpr int kMicroBatches = 480;
  struct Case {
    std::string schedule;
    int stages, replicas;
  };
  // With slow links messages go around, and those that are on their way take turns, mostly without an end.
  constexpr double kSlow = 1e6, kFast = 1e11;
  const std::vector<Case> cases{{"1f1b", 1, 2}, {"1f1b", 2, 1}, {"1f1b", 4, 2}, {"zb_h1", 4, 1}, {"interleaved", 2, 2}};
  for (const Case& c : cases)
    for (const double bandwidth : {kSlow, kFast})
      for (const std::string body : {"", ", tensor: 2"}) {
        const int virtual_stages = c.schedule == "interleaved" ? 2 : 1;
        INFO(c.schedule << ", " << c.stages << " stages of " << c.replicas << " replicas, " << bandwidth << " B/s"
                        << body);
        const int workers = c.stages * c.replicas * (body.empty() ? 1 : 2);
        const testing::Star star(workers, bandwidth, 10 / bandwidth);
        testing::TransformerSetting setting{small_transformer(8), c.replicas * kMicroBatches};
        const std::string options = fmt::format(
            "{{mesh: {{pipeline: {}, data: {}{}}}, schedule: {{name: {}, micro_batches: {}{}}}}}", c.stages, c.replicas,
            body, c.schedule, kMicroBatches, c.schedule == "interleaved" ? ", virtual_stages: 2" : "");
        const auto compiled = [&] {
          return compile_transformer(star.cluster(), workers, "composition", options, setting);
        };
        const TrainingStep whole = compiled();
        CHECK_FALSE(whole.shortened);
        const auto of_size = [&](int micro_batches) {
          testing::TransformerSetting sized = setting;
          sized.length = {.micro_batches = micro_batches};
          return compile_transformer(star.cluster(), workers, "composition", options, sized);
        };
        setting.length.shorten_from = 1;
        TrainingStep shortened = compiled();
        std::vector<ExecutionResult> results;
        for (; shortened.shortened; setting.length.patience *= 2, shortened = compiled()) {
          results = whole_and_told(star.cluster(), whole, shortened, of_size);
          if (results.size() == 2) break;
        }
        if (!shortened.shortened && bandwidth == kSlow && c.stages * virtual_stages > 2) continue;
        REQUIRE(shortened.shortened);
        CHECK(shortened.graph.tasks().size() < whole.graph.tasks().size() / 2);
        CHECK(shortened.composition == whole.composition);
        REQUIRE(shortened.memory.size() == whole.memory.size());
        for (std::size_t m = 0; m < whole.memory.size(); ++m)
          CHECK(shortened.memory[m].use.total().value == whole.memory[m].use.total().value);
        int last = 0;
        for (const Task& task : shortened.graph.tasks()) last = std::max(last, task.label.micro_batch);
        CHECK(last == kMicroBatches - 1);
        UNSCOPED_INFO("patience " << setting.length.patience);
        check_alike(results[1], results[0]);
      }
}

TEST_CASE("one folded step of fewer micro-batches tells what the whole one gives, and where it does not",
          "[long_step]") {
  constexpr int kMicroBatches = 64, kFewer = 32;
  const testing::Star star(8, 1e10, 1e-6);
  const auto compiled = [&](const std::string& schedule, int fewer) {
    testing::TransformerSetting setting{small_transformer(8), 2 * kMicroBatches};
    setting.length = {.micro_batches = fewer};
    return compile_transformer(
        star.cluster(), 8, "composition",
        fmt::format("{{mesh: {{pipeline: 4, data: 2}}, schedule: {{name: {}, micro_batches: {}}}}}", schedule,
                    kMicroBatches),
        setting);
  };
  const auto executed = [&](const TrainingStep& step, bool folded) {
    ExecutionOptions how{.iterations = 3, .fold = folded, .record_ends = true};
    if (step.shortened) how.shortened = &*step.shortened;
    return testing::simulate(star.cluster(), step.graph, how);
  };
  for (const std::string schedule : {"1f1b", "zb_h1", "interleaved, virtual_stages: 2"}) {
    const TrainingStep fewer = compiled(schedule, kFewer);
    REQUIRE(fewer.shortened);
    const ExecutionResult told = executed(fewer, true), whole = executed(compiled(schedule, 0), true);
    INFO(schedule << ", repeats after " << told.repeats_after);
    REQUIRE(told.tells_whole);
    CHECK(told.repeats_after > 0);
    CHECK(told.iteration == Approx(whole.iteration).epsilon(1e-10));
    CHECK(told.total == Approx(whole.total).epsilon(1e-10));
    CHECK(told.metrics.exposed_communication == Approx(whole.metrics.exposed_communication).epsilon(1e-9));
    REQUIRE(told.workers.size() == whole.workers.size());
    for (std::size_t w = 0; w < told.workers.size(); ++w)
      CHECK(told.workers[w].ended == Approx(whole.workers[w].ended).epsilon(1e-10));
    check_alike(told.totals.sent, whole.totals.sent);
    check_alike(told.totals.on_link, whole.totals.on_link);
    CHECK_FALSE(executed(fewer, false).tells_whole);  // its ranks do not stand for each other
  }
  CHECK_FALSE(executed(compiled("1f1b", 5), true).tells_whole);        // the pipeline has not repeated itself
  CHECK_FALSE(executed(compiled("gpipe", kFewer), true).tells_whole);  // nor does this schedule
}

TEST_CASE("steps grow on a straight line where the busiest device works all the time", "[long_step]") {
  constexpr int kMicroBatches = 96;
  constexpr double kDoubt = 1e-2;
  struct Schedule {
    std::string name;
    int longer, shorter;
  };
  int believed = 0;
  for (const double bandwidth : {3e8, 3e9, 3e10})
    for (const int layers : {8, 9})
      for (const std::string axis : {"data", "tensor"})
        for (const Schedule& schedule : {Schedule{"zb_h1", 28, 25}, Schedule{"interleaved, virtual_stages: 2", 12, 8},
                                         Schedule{"gpipe", 12, 11}, Schedule{"1f1b", 12, 11}}) {
          INFO(schedule.name << ", " << axis << ", " << layers << " layers, " << bandwidth << " B/s");
          const testing::Star star(8, bandwidth, 10 / bandwidth);
          const auto executed = [&](int micro_batches) {
            testing::TransformerSetting setting{small_transformer(layers), (axis == "data" ? 2 : 1) * kMicroBatches};
            setting.length = {.micro_batches = micro_batches};
            const TrainingStep step = compile_transformer(
                star.cluster(), 8, "composition",
                fmt::format("{{mesh: {{pipeline: 4, {}: 2}}, schedule: {{name: {}, micro_batches: {}}}}}", axis,
                            schedule.name, kMicroBatches),
                setting);
            return testing::simulate(star.cluster(), step.graph, {.iterations = 3, .record_own_work = true});
          };
          const ExecutionResult whole = executed(0), longer = executed(schedule.longer),
                                shorter = executed(schedule.shorter);
          const double times =
              static_cast<double>(kMicroBatches - schedule.longer) / (schedule.longer - schedule.shorter);
          const double estimate = longer.iteration + times * (longer.iteration - shorter.iteration);
          if (std::abs(unexplained_growth(shorter, longer)) * times > kDoubt * estimate) continue;
          ++believed;
          CHECK(estimate == Approx(whole.iteration).epsilon(kDoubt));
        }
  CHECK(believed > 5);
  CHECK(believed < 40);
}

TEST_CASE("a step of very many tasks that never repeats is estimated, and says so", "[long_step]") {
  constexpr int kFew = 200, kMany = 6000;
  const testing::Star star(8, 1e10, 1e-6);
  const auto compiled = [&](int micro_batches, StepLength length) {
    testing::TransformerSetting setting{small_transformer(8), micro_batches};
    setting.length = length;
    return compile_transformer(
        star.cluster(), 8, "composition",
        fmt::format("{{mesh: {{pipeline: 4, tensor: 2}}, schedule: {{name: gpipe, micro_batches: {}}}}}",
                    micro_batches),
        setting);
  };
  const auto told = [&](int micro_batches) {
    return whole_and_told(star.cluster(), compiled(micro_batches, {}), compiled(micro_batches, {.shorten_from = 1}),
                          [&](int fewer) { return compiled(micro_batches, {.micro_batches = fewer}); });
  };
  CHECK_FALSE(ShorterSteps::may_tell(compiled(kFew, {.shorten_from = 1})));
  REQUIRE(ShorterSteps::may_tell(compiled(kMany, {.shorten_from = 1})));
  const std::vector<ExecutionResult> results = told(kMany);
  REQUIRE(results.size() == 2);
  const ExecutionResult &whole = results[0], &estimate = results[1];
  CHECK(whole.exact);
  CHECK_FALSE(estimate.exact);
  REQUIRE(estimate.remarks.size() == 1);
  CHECK_THAT(estimate.remarks.front(), Catch::Contains("estimated from steps of 11 and 12 of its 6000 micro-batches"));
  CHECK(estimate.iteration == Approx(whole.iteration).epsilon(1e-3));
  CHECK(estimate.metrics.compute == Approx(whole.metrics.compute).epsilon(1e-9));
  CHECK(estimate.metrics.bytes == Approx(whole.metrics.bytes).epsilon(1e-9));
  CHECK(estimate.bound->seconds <= whole.iteration * (1 + 1e-9));

  // What another process does meanwhile is taken; if nothing comes of it, it is done here.
  const auto with = [&](const ShorterSteps::Elsewhere& elsewhere) {
    return testing::unpack(testing::in_child([&] {
             SimEngine engine(star.cluster());
             TrainingStep step = compiled(kMany, {.shorten_from = 1});
             const auto of_size = [&](int fewer) { return compiled(kMany, {.micro_batches = fewer}); };
             std::vector<ExecutionResult> estimates{
                 ShorterSteps(of_size, star.cluster(), engine, {.iterations = 50}, elsewhere).tell(step).value()};
             Archive archive;
             archive(estimates);
             return archive.bytes();
           }))
        .front();
  };
  using Work = std::function<ExecutionResult()>;
  using Waiting = std::function<std::optional<ExecutionResult>()>;
  CHECK(with([](const Work& work) -> Waiting { return work; }).iteration == estimate.iteration);
  CHECK(with([](const Work&) -> Waiting { return [] { return std::nullopt; }; }).iteration == estimate.iteration);
  const ExecutionResult longer = with([](const Work& work) -> Waiting {
    return [work] {
      ExecutionResult later = work();
      later.iteration *= 1 - 1e-4;
      return later;
    };
  });
  CHECK(longer.iteration > estimate.iteration);
}

TEST_CASE("a step whose iterations overlap is estimated, whether they are seen to repeat themselves or not",
          "[long_step]") {
  // Two stages of two devices each; the second updates for 5 ms, while the first has begun again.
  constexpr int kAll = 210'000, kFew = 200, kWindow = 25;
  const testing::Star star(4, 1e10, 1e-6);
  const auto of_size = [](int micro_batches) {
    TrainingStep step;
    CyclicTaskGraph& graph = step.graph;
    const GroupId first = graph.add_group("first", {0, 1}), second = graph.add_group("second", {2, 3});
    const QueueId ahead = graph.add_queue("ahead", first, QueueRole::compute, Discipline::program_order);
    const QueueId behind = graph.add_queue("behind", second, QueueRole::compute, Discipline::program_order);
    TaskId before{}, begin{}, next{};
    for (int m = 0; m < micro_batches; ++m) {
      const TaskId sent = graph.compute(ahead, Seconds(1e-3), {"forward", "first", m});
      const TaskId received = graph.compute(behind, Seconds(0.9e-3), {"forward", "second", m});
      graph.after(sent, received);
      if (m == 0) begin = sent, next = received;
      before = received;
    }
    const QueueId aside = graph.add_queue("aside", second, QueueRole::compute, Discipline::fifo);
    const TaskId update = graph.compute(aside, Seconds(5e-3), {"update", "second"});
    graph.after(before, begin, 1);
    graph.after(before, update);
    graph.after(update, next, 1);
    step.shortened = ShortenedStep{.micro_batches = micro_batches,
                                   .left_out = kAll - micro_batches,
                                   .repeats = false,
                                   .alone = false,
                                   .window = kWindow};
    return step;
  };
  for (const std::int64_t iterations : {2, 50}) {
    const ExecutionResult told =
        testing::unpack(testing::in_child([&] {
          SimEngine engine(star.cluster());
          TrainingStep step = of_size(kFew);
          std::vector<ExecutionResult> results{
              ShorterSteps(of_size, star.cluster(), engine, {.iterations = iterations}).tell(step).value()};
          Archive archive;
          archive(results);
          return archive.bytes();
        })).front();
    CHECK(told.iterations_simulated > 1);
    CHECK(told.period.has_value() == (iterations > 2));
    CHECK_FALSE(told.exact);
    CHECK(told.remarks.size() == 1);
    // An iteration begins when the second stage is through with the one before, which its update does not hold up.
    const double iteration = kAll * 1e-3 + 0.9e-3;
    const double total = static_cast<double>(iterations) * iteration + 5e-3;
    CHECK(told.total == Approx(total).epsilon(1e-12));
    CHECK(told.iteration == Approx(iterations > 2 ? iteration : total / 2).epsilon(1e-12));
    CHECK(told.metrics.compute == Approx(kAll * 1.9e-3 / 2 + 5e-3 / 2).epsilon(1e-6));
  }
}

TEST_CASE("steps of which nothing is saved, or that never repeat, are whole", "[long_step]") {
  const testing::Star star(4, 1e8, 1e-5);
  const auto is_whole = [&](const std::string& schedule, int micro_batches) {
    testing::TransformerSetting setting{small_transformer(4), micro_batches};
    setting.length.shorten_from = 1;
    return !compile_transformer(star.cluster(), 4, "composition",
                                fmt::format("{{mesh: {{pipeline: 4}}, schedule: {{name: {}, micro_batches: {}}}}}",
                                            schedule, micro_batches),
                                setting)
                .shortened;
  };
  CHECK(is_whole("1f1b", 17));  // 12 micro-batches are more than two thirds
  CHECK_FALSE(is_whole("1f1b", 18));
  CHECK(is_whole("gpipe", 23));  // of it, 12 do not tell alone
  CHECK_FALSE(is_whole("gpipe", 24));
  CHECK(is_whole("2bw", 100));

  // Without patience, fewer do for an estimate.
  const auto micro_batches = [&](const std::string& schedule, int stages, int all, int patience) {
    const testing::Star many(stages, 1e8, 1e-5);
    testing::TransformerSetting setting{small_transformer(2 * stages), all};
    setting.length = {.shorten_from = 1, .patience = patience};
    const TrainingStep step = compile_transformer(
        many.cluster(), stages, "composition",
        fmt::format("{{mesh: {{pipeline: {}}}, schedule: {{name: {}, micro_batches: {}}}}}", stages, schedule, all),
        setting);
    return step.shortened ? std::vector{step.shortened->micro_batches, step.shortened->more} : std::vector<int>{};
  };
  const std::string interleaved = "interleaved, virtual_stages: 2";
  CHECK(micro_batches("zb_h1", 32, 120, 0) == std::vector{40, 3 * 60});
  CHECK(micro_batches("zb_h1", 32, 120, 1) == std::vector{60, 0});
  CHECK(micro_batches("zb_h1", 32, 110, 0) == std::vector{40, 0});  // 60 are more than half
  CHECK(micro_batches("zb_h1", 32, 60, 0) == std::vector{40, 0});
  CHECK(micro_batches("zb_h1", 32, 59, 0).empty());  // 40 are more than two thirds
  CHECK(micro_batches("zb_h1", 8, 120, 0) == std::vector{16, 3 * 24});
  CHECK(micro_batches("zb_h1", 60, 120, 0) == std::vector{72, 0});  // a sixth more, and two
  CHECK(micro_batches(interleaved, 8, 56, 0) == std::vector{24, 0});
  CHECK(micro_batches(interleaved, 8, 56, 1).empty());
  CHECK(micro_batches(interleaved, 8, 64, 0) == std::vector{24, 40});
}

TEST_CASE("a step repeats itself as long as there is something of all, and not only once", "[long_step]") {
  const auto after = [](const MadeUp& step, int micro_batches, int repeat = 1) -> std::optional<int> {
    const auto found =
        recurrence_of(ends_by_name({step.graph, step.result}), micro_batches, repeat, step.result.iteration);
    return found ? std::optional(found->after) : std::nullopt;
  };
  CHECK(after(MadeUp(10).add("a", {1, 2, 3, 4, 5, 6, 7, 8}).add("b", {3, 4, 5, 6, 7, 8, 9, 10}), 8) == 1);
  CHECK(after(MadeUp(10).add("a", {1, 2, 3, 4, 5, 6, 7, 8}).add("b", {3, 4, 5, 6, 7, 8, 9, 10}), 8, 2) == std::nullopt);
  // Once in an iteration says nothing; twice for each micro-batch does.
  CHECK(after(MadeUp(9).add("a", {1, 2, 3, 4, 5, 6, 7, 8}).add("update", {9}), 8) == 1);
  CHECK(after(MadeUp(9).add("a", {1, 1.3, 2, 2.3, 3, 3.3, 4, 4.3, 5, 5.3}), 5) == 1);
  // Every second micro-batch is late; at first, all are.
  CHECK(after(MadeUp(9).add("a", {1, 2.1, 3, 4.1, 5, 6.1, 7, 8.1}), 8) == 2);
  CHECK(after(MadeUp(9).add("a", {1.5, 2.5, 3, 4, 5, 6, 7, 8}), 8) == 1);
  CHECK(after(MadeUp(9).add("a", {1, 2.1, 3, 4.1, 5}), 5) == std::nullopt);
  // The second stage falls back; what comes when the first is done does not count.
  CHECK(after(MadeUp(9).add("a", {1, 2, 3, 4, 5, 6}).add("b", {2, 3.1, 4.2, 5.3, 6.4, 7.5}), 6) == std::nullopt);
  CHECK(after(MadeUp(9).add("a", {1, 2, 3, 4, 5, 6}).add("b", {2, 3, 4, 5, 6, 6.5}), 6) == 1);
}

TEST_CASE("two steps tell only if they repeat until a common date", "[long_step]") {
  // A micro-batch a second on two stages, of which the second begins two seconds later; an update at the end.
  const auto shorter = [] { return MadeUp(9).add("a", {1, 2, 3, 4, 5, 6}).add("b", {3, 4, 5, 6, 7, 8}); };
  const auto longer = [] { return MadeUp(10).add("a", {1, 2, 3, 4, 5, 6, 7}).add("b", {3, 4, 5, 6, 7, 8, 9}); };
  CHECK(tell(shorter().add("update", {9}), longer().add("update", {10})));
  // What is done once at the beginning is the same.
  CHECK(tell(shorter().add("load", {0.5}), longer().add("load", {0.5})));
  CHECK_FALSE(tell(shorter().add("update", {9}), longer().add("update", {9.5})));
  // Something happens at the beginning of the one and at the end of the other.
  CHECK_FALSE(tell(shorter().add("sum", {8.5}), longer().add("sum", {8.5})));
  // Each micro-batch takes longer than the one before; the last two steps differ by the last one.
  CHECK_FALSE(tell(MadeUp(15).add("a", {1, 3, 6, 10, 15}), MadeUp(21).add("a", {1, 3, 6, 10, 15, 21})));
  // The second stage falls back.
  CHECK_FALSE(tell(MadeUp(9).add("a", {1, 2, 3, 4, 5, 6}).add("b", {3, 4.1, 5.2, 6.3, 7.4, 8.5}),
                   MadeUp(10).add("a", {1, 2, 3, 4, 5, 6, 7}).add("b", {3, 4.1, 5.2, 6.3, 7.4, 8.5, 9.6})));
  // Iterations that overlap, and pauses.
  MadeUp overlapping = shorter();
  overlapping.result.iterations_simulated = 2;
  CHECK_FALSE(tell(overlapping, longer()));
  CHECK_FALSE(tell(shorter(), shorter()));
}

}  // namespace epocast::long_step_test
