#pragma once
// Strong-scaling curves of one study under several settings, and what the thesis says about such curves.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/reproduce/simulate.hpp"
#include "experiments/study.hpp"

namespace epocast::lee2020 {

/// Results of one setting, by rising number of workers.
using Curve = std::vector<ScenarioResult>;

/// A setting's name and its changes to the study.
struct Setting {
  std::string name;
  std::vector<Override> changes;
};

/// What Cori's Haswell nodes are given in every chapter (cori_haswell.csv): one core's rate, the rate of adding, the
/// share of the links. `duplex` is how much of the links a program's messages can use: 1, or 0.5 where each rank either
/// sends or receives.
std::vector<Override> machine(double duplex);

/// Runs the study's scenarios under every setting, all side by side. Throws what simulate() throws.
std::map<std::string, Curve> run_curves(const std::filesystem::path& study, const std::vector<Setting>& settings,
                                        const std::vector<Override>& machine, const TargetContext& context);

double best_speedup(const Curve& curve);
/// On exactly so many workers. Throws std::logic_error if the curve has no such point.
const ScenarioResult& on(const Curve& curve, std::int64_t workers);
/// The fewest workers with more exposed communication than `threshold`(result); 0 if there are none.
template <class Threshold>
double first_visible(const Curve& curve, Threshold threshold) {
  for (const ScenarioResult& point : curve)
    if (point.exposed_comm_s > threshold(point)) return static_cast<double>(point.workers);
  return 0;
}
/// The most workers that are still worth it: the last of the leading points each of which is at least `gain` times as
/// fast as the one before it.
double last_scaling(const Curve& curve, double gain);

/// A printed number that must come out, to within half a unit of its last digit.
TargetRow printed(std::string row, std::string quantity, std::string unit, double published, double simulated,
                  double half_digit = 0);
/// A fact of the text, right within a factor.
TargetRow stated(std::string row, std::string quantity, std::string unit, double published, double simulated,
                 double factor = 1, std::string note = "");
/// A stated ordering, 1 if it holds.
TargetRow ordering(std::string row, std::string claim, bool holds);

}  // namespace epocast::lee2020
