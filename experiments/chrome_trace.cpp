// The format: "Trace Event Format" by the Chromium project. Times are kept in whole ns, the resolution of Perfetto, so that
// what does not overlap before rounding does not overlap after it.
#include "experiments/chrome_trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <system_error>
#include <tuple>
#include <vector>

#include "experiments/trace_lanes.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

using Nanoseconds = std::int64_t;

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::size_t kMaxSlices = 4'000'000;  // browsers give up well before
constexpr std::size_t kMaxArrows = 200'000;

constexpr auto idx = [](auto id) { return static_cast<std::size_t>(id); };

Nanoseconds nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The JSON of a task that all its slices share.
struct TaskText {
  std::string head;  ///< name and category
  std::string args;
};

struct Slice {
  std::uint32_t text = 0;
  std::uint32_t lane = 0;
  std::uint32_t rank = 0;
  std::int64_t iteration = 0;
  Nanoseconds start = 0, end = 0;
};

/// From a slice to one that waited for it.
struct Arrow {
  std::uint32_t from = 0, to = 0;
};

struct Phase {
  Nanoseconds start = 0;
  std::int64_t iterations = 0;  ///< simulated
  bool folded = false;
};

bool is_collective(const Task& task) { return std::holds_alternative<Collective>(task.work); }

QueueRole role_of(const CyclicTaskGraph& graph, const Task& task) {
  if (!std::holds_alternative<Compute>(task.work)) return QueueRole::communication;
  return task.queue == QueueId::none ? QueueRole::compute : graph.queue(task.queue).role;
}

/// Work for many ranks on the queue of one device, such as a server's, is done on that device.
DeviceId device_of(const CyclicTaskGraph& graph, const Task& task, std::uint32_t rank) {
  const bool elsewhere = std::holds_alternative<Compute>(task.work) && task.queue != QueueId::none;
  const auto& devices = graph.group(elsewhere ? graph.queue(task.queue).group : task.ranks).devices;
  return devices.at(devices.size() == 1 ? 0 : rank);
}

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

/// Finds intervals by what they are executions of.
class IntervalIndex {
 public:
  explicit IntervalIndex(const std::vector<Interval>& intervals) : intervals_(intervals), sorted_(intervals.size()) {
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    std::sort(sorted_.begin(), sorted_.end(), [&](auto a, auto b) { return key(intervals_[a]) < key(intervals_[b]); });
  }

  /// Its place in the timeline, or kNone.
  std::uint32_t find(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
    const Key wanted{task, rank, iteration};
    const auto it = std::lower_bound(sorted_.begin(), sorted_.end(), wanted,
                                     [&](std::uint32_t i, const Key& k) { return key(intervals_[i]) < k; });
    return it != sorted_.end() && key(intervals_[*it]) == wanted ? *it : kNone;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;
  static Key key(const Interval& i) { return {i.task, i.rank, i.iteration}; }

  const std::vector<Interval>& intervals_;
  std::vector<std::uint32_t> sorted_;
};

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
  TraceLanes lanes;
  TraceProcesses processes;
  std::vector<TaskText> texts;
  std::vector<Slice> slices;  ///< by phase, then by start, end, and order of ending
  std::vector<Arrow> arrows;
  std::vector<Phase> phases;
  std::vector<std::string> notes;

  std::vector<std::uint32_t> add_slices(const CyclicTaskGraph& graph, const ExecutionResult& result, double start);
  bool add_arrows(const CyclicTaskGraph& graph, const ExecutionResult& result, const std::vector<std::uint32_t>& first_slice);
  void print(std::ostream& out) const;
  void print_metadata(EventWriter& events) const;
  void print_slices(EventWriter& events) const;
};

/// Returns the first slice of each interval; the others of a collective follow it, rank by rank.
std::vector<std::uint32_t> ChromeTrace::Impl::add_slices(const CyclicTaskGraph& graph, const ExecutionResult& result,
                                                         double start) {
  const auto first_text = static_cast<std::uint32_t>(texts.size());
  for (const Task& task : graph.tasks()) texts.push_back(text_of(graph, task));

  const std::vector<Interval>& intervals = result.timeline.intervals;
  const auto span = [&](const Interval& i) { return std::pair(nanoseconds(start + i.start), nanoseconds(start + i.end)); };
  std::vector<std::uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return span(intervals[a]) < span(intervals[b]); });

  std::vector<std::uint32_t> first_slice(intervals.size(), kNone);
  for (const std::uint32_t i : order) {
    const Interval& interval = intervals[i];
    const Task& task = graph.task(TaskId(interval.task));
    const bool on_all = is_collective(task) && !result.folded;
    const std::uint32_t ranks = on_all ? static_cast<std::uint32_t>(graph.ranks_of(TaskId(interval.task))) : 1;
    if (slices.size() + ranks > kMaxSlices) {
      notes.push_back(fmt::format("only the first {} slices are shown", slices.size()));
      break;
    }
    first_slice[i] = static_cast<std::uint32_t>(slices.size());
    const auto [from, to] = span(interval);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t rank = on_all ? r : interval.rank;
      const std::uint32_t lane = lanes.place(device_of(graph, task, rank), role_of(graph, task), from, to);
      slices.push_back({first_text + interval.task, lane, rank, interval.iteration, from, to});
    }
  }
  return first_slice;
}

/// Returns whether all arrows found room.
bool ChromeTrace::Impl::add_arrows(const CyclicTaskGraph& graph, const ExecutionResult& result,
                                   const std::vector<std::uint32_t>& first_slice) {
  std::vector<std::vector<Edge>> incoming(graph.tasks().size());
  for (const Edge& edge : graph.edges()) incoming[idx(edge.after)].push_back(edge);
  const auto ranks_of = [&](TaskId task) { return result.folded ? 1 : static_cast<std::uint32_t>(graph.ranks_of(task)); };

  const std::vector<Interval>& intervals = result.timeline.intervals;
  const IntervalIndex index(intervals);
  const auto slice_of = [&](TaskId task, std::uint32_t rank, std::int64_t iteration) {
    const bool one_for_all = is_collective(graph.task(task));
    const std::uint32_t i = index.find(static_cast<std::uint32_t>(task), one_for_all ? 0 : rank, iteration);
    return i == kNone || first_slice[i] == kNone ? kNone : first_slice[i] + (one_for_all ? rank : 0);
  };
  const auto add_arrow = [&](std::uint32_t from, std::uint32_t to) {
    if (from == kNone || to == kNone || slices[from].lane == slices[to].lane) return true;
    if (arrows.size() >= kMaxArrows) return false;
    arrows.push_back({from, to});
    return true;
  };

  for (const Interval& consumer : intervals)
    for (const Edge& edge : incoming[consumer.task]) {
      if (consumer.iteration < edge.lag) continue;  // let through by an initial token
      const std::uint32_t before = ranks_of(edge.before), after = ranks_of(edge.after);
      const bool all_ranks = is_collective(graph.task(edge.after));
      const std::uint32_t begin = all_ranks ? 0 : consumer.rank, end = all_ranks ? after : consumer.rank + 1;
      for (std::uint32_t r = begin; r < end; ++r) {
        // Rank by rank, fanned out from one rank, or joined by one; collectives over other groups by their first ranks.
        const std::uint32_t to = slice_of(edge.after, r, consumer.iteration);
        const bool joins = after == 1;
        if (before != after && before != 1 && !joins && r > 0) break;
        const std::uint32_t first = before == after ? r : 0, last = joins ? before : first + 1;
        for (std::uint32_t p = first; p < last; ++p)
          if (!add_arrow(slice_of(edge.before, p, consumer.iteration - edge.lag), to)) return false;
      }
    }
  return true;
}

void ChromeTrace::Impl::print_metadata(EventWriter& events) const {
  DeviceId named = -1;
  std::vector<std::uint32_t> order(lanes.all().size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t l) {
    const TraceLane& lane = lanes.all()[l];
    return std::tuple(lane.device, lane.role, lane.number);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TraceLane& lane = lanes.all()[order[i]];
    const auto metadata = [&](const char* what, const std::string& args) {
      events.event(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, lane.device, order[i] + 1, args);
    };
    if (lane.device != named) {
      metadata("process_name", "\"name\":" + quoted(processes.name(lane.device)));
      metadata("process_sort_index", fmt::format("\"sort_index\":{}", lane.device));
      named = lane.device;
    }
    metadata("thread_name", "\"name\":" + quoted(lane.name()));
    metadata("thread_sort_index", fmt::format("\"sort_index\":{}", i));
  }
  const DeviceId somewhere = order.empty() ? 0 : lanes.all()[order.front()].device;
  for (std::size_t p = 0; phases.size() > 1 && p < phases.size(); ++p)
    events.event(R"({{"ph":"i","s":"g","name":"phase {} starts","cat":"phase","pid":{},"tid":{},"ts":{},)"
                 R"("args":{{"iterations_simulated":{},"folded":{}}}}})",
                 p + 1, somewhere, order.empty() ? 0 : order.front() + 1, us(phases[p].start), phases[p].iterations,
                 phases[p].folded);
}

/// Each slice, followed at once by its arrows: readers bind an arrow to the last slice they saw begin before it.
void ChromeTrace::Impl::print_slices(EventWriter& events) const {
  std::vector<std::uint32_t> by_start(arrows.size()), by_end(arrows.size());
  std::iota(by_start.begin(), by_start.end(), 0U);
  std::iota(by_end.begin(), by_end.end(), 0U);
  std::stable_sort(by_start.begin(), by_start.end(), [&](auto a, auto b) { return arrows[a].from < arrows[b].from; });
  std::stable_sort(by_end.begin(), by_end.end(), [&](auto a, auto b) { return arrows[a].to < arrows[b].to; });

  auto leaving = by_start.begin(), arriving = by_end.begin();
  for (std::uint32_t s = 0; s < slices.size(); ++s) {
    const Slice& slice = slices[s];
    const TaskText& text = texts[slice.text];
    const DeviceId device = lanes.all()[slice.lane].device;
    const std::uint32_t thread = slice.lane + 1;
    events.event(R"({{"ph":"X",{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{},"iteration":{},"rank":{}}}}})", text.head,
                 device, thread, us(slice.start), us(slice.end - slice.start), text.args, slice.iteration, slice.rank);
    for (; arriving != by_end.end() && arrows[*arriving].to == s; ++arriving)
      events.event(R"({{"ph":"f","bp":"e","name":"then","cat":"dependency","id":{},"pid":{},"tid":{},"ts":{}}})",
                   *arriving + 1, device, thread, us(slice.start));
    // At its very end a slice counts as over.
    for (; leaving != by_start.end() && arrows[*leaving].from == s; ++leaving)
      events.event(R"({{"ph":"s","name":"then","cat":"dependency","id":{},"pid":{},"tid":{},"ts":{}}})", *leaving + 1, device,
                   thread, us(std::max(slice.start, slice.end - 1)));
  }
}

void ChromeTrace::Impl::print(std::ostream& out) const {
  out << "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"writer\":\"epocast\",\"notes\":["
      << fmt::format("{}", fmt::join([&] {
           std::vector<std::string> all;
           for (const std::string& note : notes) all.push_back(quoted(note));
           return all;
         }(), ",")) << "]},\n\"traceEvents\":[\n";
  EventWriter events(out);
  print_metadata(events);
  print_slices(events);
  events.flush();
  out << "\n]}\n";
}

ChromeTrace::ChromeTrace() : impl_(std::make_unique<Impl>()) {}
ChromeTrace::~ChromeTrace() = default;

void ChromeTrace::add(const CyclicTaskGraph& graph, const Cluster& cluster, const ExecutionResult& result, double start) {
  impl_->phases.push_back({nanoseconds(start), result.iterations_simulated, result.folded});
  impl_->processes.add(graph, cluster, result.folded);
  const auto first_slice = impl_->add_slices(graph, result, start);
  const bool all_arrows = impl_->add_arrows(graph, result, first_slice);

  const auto note = [&](const std::string& text) {
    impl_->notes.push_back(fmt::format("phase {}: {}", impl_->phases.size(), text));
  };
  if (result.folded) note("folded: each group of interchangeable ranks is shown by its first");
  if (result.timeline.truncated)
    note(fmt::format("truncated: only the first {} executions of tasks were recorded", result.timeline.intervals.size()));
  if (result.total > result.totals.makespan * (1 + 1e-9))
    note(fmt::format("only the {} simulated iterations are shown; the rest is extrapolated", result.iterations_simulated));
  if (!all_arrows) note(fmt::format("only the first {} arrows of the file are drawn", kMaxArrows));
}

std::string ChromeTrace::text() const {
  std::ostringstream out;
  impl_->print(out);
  return std::move(out).str();
}

void ChromeTrace::write(const std::filesystem::path& file) const {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::string& problem) {
    throw ConfigError(Location{file.string()}, "", "cannot write this trace: " + problem);
  };
  // Renaming would replace a link or a device such as /dev/stdout.
  std::error_code error;
  const fs::file_type type = fs::symlink_status(file, error).type();
  const bool in_place = type != fs::file_type::regular && type != fs::file_type::not_found;
  fs::path target = file;
  if (!in_place) target.replace_filename(fmt::format(".{}.{}.part", file.filename().string(), ::getpid()));

  errno = 0;
  std::ofstream out(target, std::ios::binary);
  if (out) impl_->print(out);
  out.close();
  const int reason = errno;
  if (!out) {
    if (!in_place) fs::remove(target, error);
    fail(reason != 0 ? std::generic_category().message(reason) : "the disk may be full");
  }
  if (in_place) return;
  fs::rename(target, file, error);
  if (error) {
    const std::string problem = error.message();
    fs::remove(target, error);
    fail(problem);
  }
}

}  // namespace epocast
