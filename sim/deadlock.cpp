#include "sim/deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace epocast {
namespace {

constexpr std::size_t kMaxLines = 8, kMaxRanks = 4;

std::string rank_text(const Standstill& s, Instance i) {
  if (s.graph.graph->width_of(TaskId(i.task)) == 1) return "";
  return fmt::format(" of {} {} ({})", s.graph.task(i.task).axis.extent > 1 ? "the team of rank" : "rank",
                     s.graph.first_rank(i), s.cluster.devices[static_cast<std::size_t>(s.graph.device(i))].name);
}

/// "'push fc6' of rank 3 (node-3), 'push fc6' of rank 5 (node-5) and 2 more"
std::string list(const Standstill& s, const std::vector<Instance>& instances) {
  std::string text;
  for (std::size_t k = 0; k < std::min(instances.size(), kMaxRanks); ++k)
    text += fmt::format("{}'{}'{}", k == 0 ? "" : ", ", s.graph.task(instances[k].task).label.text(),
                        rank_text(s, instances[k]));
  if (instances.size() > kMaxRanks) text += fmt::format(" and {} more", instances.size() - kMaxRanks);
  return text;
}

/// Who has to end first, if the instance waits for anybody, and since when it does.
struct Wait {
  std::vector<Instance> for_whom;
  double since = 0;
};

Wait wait_of(const Standstill& s, Instance i) {
  Wait wait;
  s.readiness.for_each_missing(i, [&](Instance before) { wait.for_whom.push_back(before); });
  const CompiledTask& task = s.graph.tasks[i.task];
  wait.since = s.ended[s.graph.instance_id(i)];
  const auto arrived = [&](Instance before) {
    const bool missing = std::any_of(wait.for_whom.begin(), wait.for_whom.end(),
                                     [&](Instance m) { return m.task == before.task && m.rank == before.rank; });
    if (!missing) wait.since = std::max(wait.since, s.ended[s.graph.instance_id(before)]);
  };
  for (std::uint32_t k = 0; k < task.in_count; ++k) {
    const CompiledEdge& edge = s.graph.edges[s.graph.in[task.first_in + k]];
    edge.to.for_each_rank(i.rank, [&](std::uint32_t r) { arrived({edge.before, edge.from.team_of(r)}); });
  }
  return wait;
}

}  // namespace

std::string describe_deadlock(const Standstill& s) {
  std::set<DeviceId> still;
  for (const StuckInstance& stuck : s.stuck) still.insert(stuck.device);
  const auto own_fault = [&](Instance i) {
    return s.graph.tasks[i.task].width > 1 && still.contains(s.graph.device(i));
  };
  std::size_t waiting = 0;
  std::vector<std::string> lines, others;  // those who wait for what stands still come first
  for (std::uint32_t t = 0; t < s.graph.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < s.graph.tasks[t].width; ++r) {
      const Instance i{t, r};
      const std::uint32_t started = s.started[s.graph.instance_id(i)];
      if (started >= s.iterations || own_fault(i)) continue;
      const Wait wait = wait_of(s, i);
      if (wait.for_whom.empty()) continue;  // in line, or under way for ever
      ++waiting;
      const bool first = std::any_of(wait.for_whom.begin(), wait.for_whom.end(), own_fault);
      if (auto& list_of = first ? lines : others; list_of.size() < kMaxLines)
        list_of.push_back(fmt::format("'{}'{} waits since {:.6g} s for {}, to start iteration {}",
                                      s.graph.task(t).label.text(), rank_text(s, i), wait.since, list(s, wait.for_whom),
                                      started + 1));
    }
  if (waiting == 0) return "";
  lines.insert(lines.end(), others.begin(), others.end());
  if (lines.size() > kMaxLines) lines.resize(kMaxLines);
  std::string text = fmt::format("deadlock: nothing can happen any more after {:.6g} s", s.date);
  for (const StuckInstance& stuck : s.stuck)
    text += fmt::format("\n  {} stands still for ever since {:.6g} s, in iteration {} of '{}'{}",
                        s.cluster.devices[static_cast<std::size_t>(stuck.device)].name, stuck.since,
                        s.started[s.graph.instance_id(stuck.instance)], s.graph.task(stuck.instance.task).label.text(),
                        rank_text(s, stuck.instance));
  for (const std::string& line : lines) text += "\n  " + line;
  if (waiting > kMaxLines) text += fmt::format("\n  and {} more wait", waiting - kMaxLines);
  return text;
}

}  // namespace epocast
