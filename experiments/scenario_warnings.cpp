#include "experiments/scenario_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "experiments/calibrate/step_measurements.hpp"
#include "experiments/memory_advice.hpp"

namespace epocast {
namespace {

/// Whether workers that do not wait for each other, all equal, meet on a link or at a server that cannot serve all of
/// them at once. Then how they fall into step decides how long they wait, and nothing disturbs that.
bool locks_in_phase(const ScenarioSetup& setup, const PhaseSettings& phase, const PhaseRun& run) {
  const Irregularity& irregular = setup.irregularity;
  const bool vary = irregular.noise.any() || !irregular.slow_devices.empty() || !irregular.slow_links.empty() ||
                    std::ranges::any_of(irregular.slowdown, [](double s) { return s != 1; }) ||
                    DeviceKinds(setup.cluster, phase.workers).count() > 1;
  const CyclicTaskGraph& graph = run.step.graph;
  const std::size_t alike = graph.group(graph.tasks().front().ranks).devices.size();
  if (vary || alike < 2 || !graph.ranks_are_independent()) return false;
  constexpr double kShare = 0.01;  // of an iteration spent waiting, that is worth a word
  const bool server_is_full = std::ranges::any_of(
      run.result.servers, [](const ServerReport& server) { return server.utilization > 1 - kShare; });
  return server_is_full || (run.result.bound && run.result.iteration > (1 + kShare) * run.result.bound->seconds);
}

}  // namespace

void add_warnings(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
                  const std::optional<std::vector<Remedy>>& remedies, ScenarioResult& out) {
  const auto add = [&](const std::vector<std::string>& caveats) {
    for (const std::string& caveat : caveats)
      if (std::find(out.warnings.begin(), out.warnings.end(), caveat) == out.warnings.end())
        out.warnings.push_back(caveat);
  };
  if (setup.cost_model)
    for (const PhaseRun& run : runs)
      for (const auto& [batch, device] : run.asked) {
        add(setup.cost_model->caveats(batch));
        add(setup.cost_model->device_caveats(setup.cluster.devices[static_cast<std::size_t>(device)]));
      }
  if (setup.model.opaque && setup.computes_updates)
    add(
        {fmt::format("nothing says how long {} computes, so times are those of communication and updates alone; give "
                     "compute.step_time",
                     setup.model.name)});
  if (!setup.model.left_out.empty() && setup.computes_updates)
    add({fmt::format("{} leaves out {}; a measured compute.step_time has them", setup.model.name,
                     setup.model.left_out)});
  if (setup.steps) add(setup.steps->caveats(range_of(setup)));
  for (std::size_t p = 0; p < runs.size(); ++p)
    if (locks_in_phase(setup, setup.phases[p], runs[p]))
      add(
          {"equal workers that do not wait for each other contend, and nothing varies: how they fall into step decides "
           "how long they wait; before comparing asynchronous schemes give them a spread, as in `noise: {compute_cv: "
           "0.05, seeds: 5}`"});
  for (const MeasuredCollectives& measured : setup.measured_collectives)
    for (const PhaseRun& run : runs) add(measured.caveats(run.step.graph, setup.cluster));
  if (out.fits_memory && !*out.fits_memory) out.warnings.push_back(memory_advice(setup, runs, remedies));
  if (const std::string advice = host_memory_advice(setup, runs); !advice.empty()) out.warnings.push_back(advice);
  for (std::size_t p = 0; p < runs.size(); ++p)
    for (std::size_t w = 0; w < runs[p].result.workers.size(); ++w)
      if (const WorkerReport& worker = runs[p].result.workers[w]; worker.stopped)
        add({fmt::format("worker {} ({}) stands still for ever since {:.4g} s{} and did {} of {} steps", w,
                         setup.cluster.devices[static_cast<std::size_t>(worker.device)].name, *worker.stopped,
                         runs.size() > 1 ? fmt::format(" of phase {}", p + 1) : "", worker.steps * runs[p].step.steps,
                         runs[p].iterations)});
  for (const PhaseRun& run : runs) add(run.step.notes);
  for (const PhaseRun& run : runs) add(run.result.remarks);
  for (const PhaseRun& run : runs) add(run.result.doubts);
  const bool doubtful = std::ranges::any_of(
      runs, [](const PhaseRun& run) { return !run.result.doubts.empty() || !run.result.remarks.empty(); });
  if (!out.exact && (!doubtful || out.iteration_ci95 > 0))
    out.warnings.push_back(fmt::format("total and epoch times are estimates: iteration {:.4g} s +- {:.2g} s (95 %)",
                                       out.iteration_s, out.iteration_ci95));
}

}  // namespace epocast
