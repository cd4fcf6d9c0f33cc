#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/report_data.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

// A page with more would open slowly, and nobody could tell them apart.
constexpr std::size_t kMostSlices = 60'000;

/// Events of a timeline, with numbers for processes and threads.
class TimelineReader {
 public:
  TimelineReader(ReportTimeline& timeline, const std::string& file) : timeline_(timeline), file_(file) {}

  void read(const ordered_json& event, std::size_t index) {
    index_ = index;
    const std::string phase = text(event, "ph");
    if (phase == "M") return read_name(event);
    if (phase != "X") return;  // arrows and marks
    const std::size_t lane = lane_of({number(event, "pid"), number(event, "tid")});
    const bool has_role = event.contains("cat") && event["cat"].is_string();
    const std::pair<std::string, std::string> name{text(event, "name"),
                                                   has_role ? event["cat"].get<std::string>() : ""};
    const auto [known, fresh] = names_.emplace(name, timeline_.names.size());
    if (fresh) timeline_.names.push_back(name);
    timeline_.slices.push_back({.lane = lane,
                                .name = known->second,
                                .start = std::llround(real(event, "ts") * 1000),
                                .duration = std::llround(real(event, "dur") * 1000)});
  }

 private:
  using Thread = std::pair<std::int64_t, std::int64_t>;  // process and thread

  void read_name(const ordered_json& event) {
    const std::string what = text(event, "name");
    const auto name = [&] { return event.contains("args") ? text(event.at("args"), "name") : fail("args"); };
    if (what == "process_name") processes_[number(event, "pid")] = name();
    if (what == "thread_name")
      timeline_.lanes[lane_of({number(event, "pid"), number(event, "tid")})] = {processes_[number(event, "pid")],
                                                                                name()};
  }

  std::size_t lane_of(const Thread& thread) {
    const auto [known, fresh] = lanes_.emplace(thread, timeline_.lanes.size());
    if (fresh) timeline_.lanes.push_back({processes_[thread.first], std::to_string(thread.second)});
    return known->second;
  }

  std::string text(const ordered_json& object, const char* key) const {
    return object.is_object() && object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>()
                                                                                    : fail(key);
  }
  double real(const ordered_json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object.at(key).is_number()) fail(key);
    const double value = object.at(key).get<double>();
    if (!(std::abs(value) < 1e15)) fail(key);  // us: 30 years
    return value;
  }
  std::int64_t number(const ordered_json& object, const char* key) const { return std::llround(real(object, key)); }

  [[noreturn]] std::string fail(const char* key) const {
    throw ConfigError(Location{file_}, fmt::format("traceEvents[{}].{}", index_, key),
                      "is missing or is not what the Trace Event Format has there");
  }

  ReportTimeline& timeline_;
  const std::string& file_;
  std::size_t index_ = 0;
  std::map<std::int64_t, std::string> processes_;
  std::map<Thread, std::size_t> lanes_;
  std::map<std::pair<std::string, std::string>, std::size_t> names_;
};

}  // namespace

ReportTimeline read_timeline(const ordered_json& document, const std::string& file) {
  ReportTimeline timeline{.title = file};
  const ordered_json& events = document.at("traceEvents");
  if (!events.is_array()) throw ConfigError(Location{file}, "traceEvents", "is not a list");
  TimelineReader reader(timeline, file);
  for (std::size_t e = 0; e < events.size(); ++e) reader.read(events[e], e);
  if (timeline.slices.empty()) throw ConfigError(Location{file}, "traceEvents", "has no slices, nothing to show");
  const ordered_json notes = document.value(ordered_json::json_pointer("/otherData/notes"), ordered_json::array());
  for (const ordered_json& note : notes)
    if (note.is_string()) timeline.notes.push_back(note.get<std::string>());
  std::ranges::stable_sort(timeline.slices, {}, &ReportTimeline::Slice::start);
  if (timeline.slices.size() > kMostSlices) {
    timeline.notes.push_back(fmt::format("the first {} of {} slices are shown", kMostSlices, timeline.slices.size()));
    timeline.slices.resize(kMostSlices);
  }
  return timeline;
}

}  // namespace epocast
