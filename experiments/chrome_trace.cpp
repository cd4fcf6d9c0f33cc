// The format: "Trace Event Format" by the Chromium project. Events are printed one by one: no document is ever in
// memory.
#include "experiments/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/trace_slices.hpp"
#include "sim/file_output.hpp"

namespace epocast {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The JSON of a task that all its slices share.
struct TaskText {
  std::string head;  ///< name and category
  std::string args;
};

struct Phase {
  Nanoseconds start = 0;
  std::int64_t iterations = 0;  ///< simulated
  bool folded = false;
};

TaskText text_of(const CyclicTaskGraph& graph, const Task& task) {
  TaskText text{fmt::format("\"name\":{},\"cat\":\"{}\"", quoted(task.label.text()), to_string(role_of(graph, task))),
                fmt::format("\"operation\":{},\"layer\":{}", quoted(task.label.operation), quoted(task.label.layer))};
  if (task.label.micro_batch >= 0) text.args += fmt::format(",\"micro_batch\":{}", task.label.micro_batch);
  if (const auto* transfer = std::get_if<Transfer>(&task.work))
    text.args += fmt::format(",\"bytes\":{}", transfer->bytes.value);
  if (const auto* collective = std::get_if<Collective>(&task.work))
    text.args += fmt::format(",\"bytes\":{}", collective->bytes.value);
  return text;
}

/// Appends events to a stream, in large pieces.
class EventWriter {
 public:
  explicit EventWriter(std::ostream& out) : out_(out) {}

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    buffer_ += std::exchange(separator_, ",\n");
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() > 1 << 16) flush();
  }
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

 private:
  std::ostream& out_;
  std::string buffer_;
  const char* separator_ = "";
};

/// Microseconds, as the format wants them.
std::string us(Nanoseconds time) { return fmt::format("{}.{:03}", time / 1000, time % 1000); }

}  // namespace

struct ChromeTrace::Impl {
  TraceSlices trace;
  TraceProcesses processes;
  std::vector<TaskText> texts;  ///< by TraceSlice::task
  std::vector<Phase> phases;
  std::vector<std::string> notes;

  void print(std::ostream& out) const;
  void print_metadata(EventWriter& events) const;
  void print_slices(EventWriter& events) const;
};

void ChromeTrace::Impl::print_metadata(EventWriter& events) const {
  const std::vector<TraceLane>& lanes = trace.lanes();
  std::vector<std::uint32_t> order(lanes.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t l) { return std::tuple(lanes[l].device, lanes[l].role, lanes[l].number); };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });

  DeviceId named = -1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TraceLane& lane = lanes[order[i]];
    const auto metadata = [&](const char* what, const std::string& args) {
      events.event(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, lane.device, order[i] + 1,
                   args);
    };
    if (lane.device != named) {
      metadata("process_name", "\"name\":" + quoted(processes.name(lane.device)));
      metadata("process_sort_index", fmt::format("\"sort_index\":{}", lane.device));
      named = lane.device;
    }
    metadata("thread_name", "\"name\":" + quoted(lane.name()));
    metadata("thread_sort_index", fmt::format("\"sort_index\":{}", i));
  }

  if (phases.size() < 2 || lanes.empty()) return;
  for (std::size_t p = 0; p < phases.size(); ++p)
    events.event(R"({{"ph":"i","s":"g","name":"phase {} starts","cat":"phase","pid":{},"tid":{},"ts":{},)"
                 R"("args":{{"iterations_simulated":{},"folded":{}}}}})",
                 p + 1, lanes[order[0]].device, order[0] + 1, us(phases[p].start), phases[p].iterations,
                 phases[p].folded);
}

/// Each slice, followed at once by its arrows: readers bind an arrow to the last slice they saw begin before it.
void ChromeTrace::Impl::print_slices(EventWriter& events) const {
  const std::vector<TraceArrow>& arrows = trace.arrows();
  std::vector<std::uint32_t> by_from(arrows.size()), by_to(arrows.size());
  std::iota(by_from.begin(), by_from.end(), 0U);
  std::iota(by_to.begin(), by_to.end(), 0U);
  std::stable_sort(by_from.begin(), by_from.end(), [&](auto a, auto b) { return arrows[a].from < arrows[b].from; });
  std::stable_sort(by_to.begin(), by_to.end(), [&](auto a, auto b) { return arrows[a].to < arrows[b].to; });

  auto leaving = by_from.begin(), arriving = by_to.begin();
  for (std::uint32_t s = 0; s < trace.slices().size(); ++s) {
    const TraceSlice& slice = trace.slices()[s];
    const TaskText& text = texts[slice.task];
    const DeviceId device = trace.lanes()[slice.lane].device;
    const std::uint32_t thread = slice.lane + 1;
    events.event(R"({{"ph":"X",{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{},"iteration":{},"rank":{}}}}})",
                 text.head, device, thread, us(slice.start), us(slice.end - slice.start), text.args, slice.iteration,
                 slice.rank);
    for (; arriving != by_to.end() && arrows[*arriving].to == s; ++arriving)
      events.event(R"({{"ph":"f","bp":"e","name":"then","cat":"dependency","id":{},"pid":{},"tid":{},"ts":{}}})",
                   *arriving + 1, device, thread, us(slice.start));
    // At its very end a slice counts as over.
    for (; leaving != by_from.end() && arrows[*leaving].from == s; ++leaving)
      events.event(R"({{"ph":"s","name":"then","cat":"dependency","id":{},"pid":{},"tid":{},"ts":{}}})", *leaving + 1,
                   device, thread, us(std::max(slice.start, slice.end - 1)));
  }
}

void ChromeTrace::Impl::print(std::ostream& out) const {
  std::vector<std::string> remarks;
  for (const std::string& note : notes) remarks.push_back(quoted(note));
  out << "{\"displayTimeUnit\":\"ms\",\n\"otherData\":"
      << fmt::format(R"({{"writer":"epocast","notes":[{}]}})", fmt::join(remarks, ",")) << ",\n\"traceEvents\":[\n";
  EventWriter events(out);
  print_metadata(events);
  print_slices(events);
  events.flush();
  out << "\n]}\n";
}

ChromeTrace::ChromeTrace() : impl_(std::make_unique<Impl>()) {}
ChromeTrace::~ChromeTrace() = default;

void ChromeTrace::add(const CyclicTaskGraph& graph, const Cluster& cluster, const ExecutionResult& result,
                      double start) {
  impl_->phases.push_back({nanoseconds(start), result.iterations_simulated, result.folded});
  impl_->processes.add(graph, cluster, result.folded);
  for (const Task& task : graph.tasks()) impl_->texts.push_back(text_of(graph, task));

  std::vector<std::string> notes = impl_->trace.add(graph, result, start);
  if (result.folded) notes.emplace_back("folded: each group of interchangeable ranks is shown by its first");
  if (result.timeline.truncated)
    notes.push_back(fmt::format("truncated: only the first {} executions of tasks were recorded",
                                result.timeline.intervals.size()));
  if (result.total > result.totals.makespan * (1 + 1e-9))
    notes.push_back(fmt::format("only the {} simulated iterations are shown; the rest is extrapolated",
                                result.iterations_simulated));
  for (const std::string& note : notes) impl_->notes.push_back(fmt::format("phase {}: {}", impl_->phases.size(), note));
}

std::string ChromeTrace::text() const {
  std::ostringstream out;
  impl_->print(out);
  return std::move(out).str();
}

void ChromeTrace::write(const std::filesystem::path& file) const {
  write_file(file, [this](std::ostream& out) { impl_->print(out); });
}

}  // namespace epocast
