#include "experiments/calibrate/step_measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>

#include "experiments/scaled_setting.hpp"

namespace epocast {
namespace {

struct TimeColumn {
  std::string name;
  double unit = 1;    ///< s
  bool rate = false;  ///< samples per second
};
const TimeColumn kTimeColumns[] = {{"iteration_s", 1, false},
                                   {"iteration_ms", 1e-3, false},
                                   {"iteration_us", 1e-6, false},
                                   {"samples_per_s", 1, true}};

const TimeColumn& find_time_column(const CsvTable& table) {
  const TimeColumn* found = nullptr;
  for (const TimeColumn& column : kTimeColumns) {
    if (!table.has(column.name)) continue;
    if (found != nullptr)
      throw table.error(table.columns_line(), "",
                        "both '" + found->name + "' and '" + column.name + "' say how long a step took; keep one");
    found = &column;
  }
  if (found != nullptr) return *found;
  for (const std::string& column : table.columns())
    for (const char* word : {"iteration", "step", "time", "samples"})
      if (column.starts_with(word))
        throw table.error(table.columns_line(), "",
                          "column '" + column.substr(0, 60) +
                              "' has no unit that is known here; name it iteration_s, iteration_ms, iteration_us or "
                              "samples_per_s");
  throw table.error(
      table.columns_line(), "",
      "no column says how long a step took; add iteration_s, iteration_ms, iteration_us or samples_per_s");
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::ranges::lower_bound(names, name);
  if (at == names.end() || *at != name) names.insert(at, name);
}

void extend(StepRange& range, const StepRange& by) {
  for (const std::string& name : by.platforms) add_name(range.platforms, name);
  for (const std::string& name : by.models) add_name(range.models, name);
  for (const std::string& name : by.strategies) add_name(range.strategies, name);
  const auto widen = [&]<class T>(std::array<T, 2>& a, const std::array<T, 2>& b) {
    a = {a[0] == 0 ? b[0] : std::min(a[0], b[0]), std::max(a[1], b[1])};
  };
  widen(range.workers, by.workers);
  widen(range.batch, by.batch);
}

class Reader {
 public:
  Reader(const CsvTable& table, const std::filesystem::path& study, const std::vector<std::string>& fitted,
         const Registries& registries)
      : table_(table), file_(study), fitted_(fitted), registries_(registries), time_(find_time_column(table)) {}

  StepMeasurements read() {
    table_.check_header({}, {"source", "date", "note"});
    const auto header = [&](const char* key) {
      return table_.header().contains(key) ? table_.header().at(key).text : std::string();
    };
    out_.source = header("source");
    out_.date = header("date");
    for (const CsvRow& row : table_.rows()) add(row);
    out_.fitted = fitted_.empty() ? usual_constants() : fitted_;
    for (std::size_t s = 0; s < out_.steps.size(); ++s)
      in_row(table_.rows()[s], [&] {
        for (const std::string& key : out_.fitted) check_free(out_.steps[s].scenario.config(), key);
      });
    return std::move(out_);
  }

 private:
  void add(const CsvRow& row) {
    std::vector<Override> changes;
    std::string settings;
    for (const std::string& column : table_.columns()) {
      if (column == time_.name || row.empty(column)) continue;
      changes.push_back({column, row.text(column)});
      settings += (settings.empty() ? "" : ", ") + column + "=" + row.text(column);
    }
    if (const auto [same, is_new] = lines_.emplace(settings, row.line()); !is_new)
      throw row.error(
          "", fmt::format("the same settings as in line {}; keep one row, with the median of the times", same->second));
    Scenario scenario = read_row(row, changes, settings);
    const ScenarioSetup setup = check(row, scenario);
    double seconds = 0;
    if (time_.rate)
      seconds = samples_of(setup) / row.number(time_.name, {1e-6, 1e12});
    else
      seconds = row.seconds(time_.name, time_.unit);
    const StepRange range = range_of(setup);
    extend(out_.range, range);
    has_stack_ = has_stack_ || setup.stack.name() != kIdealStack;
    out_.steps.push_back({std::move(scenario), settings, seconds, row.line(), *range.place()});
  }

  Scenario read_row(const CsvRow& row, const std::vector<Override>& changes, const std::string& settings) {
    const Study study = load_study(file_, changes);
    out_.study = study.name;
    const Scenario& first = study.scenarios.front();
    if (study.scenarios.size() > 1)
      throw row.error("", fmt::format("study '{}' sweeps {}, so this is {} scenarios; give each axis a column",
                                      study.name, fmt::join(study.axes, ", "), study.scenarios.size()));
    const ConfigNode config = first.config();
    for (const char* key : {"schedule", "steps"})
      if (config.has(key))
        throw config.at(key).error(fmt::format("steps cannot be fitted to a study with {}; remove it", key));
    // Noise would drown the small changes by which constants are found.
    return {first.study, settings, {}, config.without("noise"), {}};
  }

  ScenarioSetup check(const CsvRow& row, const Scenario& scenario) const {
    return in_row(row, [&] {
      ScenarioSetup setup = read_scenario(scenario, registries_);
      for (const PhaseSettings& phase : setup.phases) setup.compile(phase).graph.validate(setup.cluster);
      return setup;
    });
  }

  /// Of a step, as `run` counts them in samples_per_s.
  static double samples_of(const ScenarioSetup& setup) {
    const PhaseSettings& phase = setup.phases.front();
    return phase.applied_samples(setup.compile(phase).graph);
  }

  std::vector<std::string> usual_constants() const {
    std::vector<std::string> out{"compute.scale", "compute.step_overhead"};
    if (out_.range.workers[1] == 1) return out;
    if (has_stack_) out.push_back("stack.scale");
    const char* const links = "network.efficiency";
    const auto sets_links = [&](const MeasuredStep& step) {
      return node_at(step.scenario.config(), links).has_value();
    };
    if (!has_stack_ || std::ranges::none_of(out_.steps, sets_links)) out.push_back(links);
    return out;
  }

  /// What a row sets wrong is reported in that row; what the study has wrong, in the study.
  template <class Action>
  std::invoke_result_t<Action> in_row(const CsvRow& row, const Action& action) const {
    try {
      return action();
    } catch (const ConfigError& problem) {
      if (!problem.where().file.starts_with("--set ")) throw;
      throw row.error(problem.key_path(), problem.problem());
    }
  }

  void check_free(const ConfigNode& config, const std::string& key) const {
    if (const std::optional<ConfigNode> given = node_at(config, key))
      throw given->error("is to be fitted; remove it here, or leave it out of --fit");
  }

  const CsvTable& table_;
  const std::filesystem::path& file_;
  const std::vector<std::string>& fitted_;
  const Registries& registries_;
  const TimeColumn& time_;
  std::map<std::string, int> lines_;
  bool has_stack_ = false;  ///< whether software costs anything in a step
  StepMeasurements out_;
};

}  // namespace

StepMeasurements read_step_measurements(const CsvTable& table, const std::filesystem::path& study,
                                        const std::vector<std::string>& fitted, const Registries& registries) {
  return Reader(table, study, fitted, registries).read();
}

StepRange range_of(const ScenarioSetup& setup) {
  StepRange range;
  range.platforms = {setup.cluster.name};
  range.models = {setup.model.name};
  range.strategies = {setup.strategy_name};
  for (const PhaseSettings& phase : setup.phases) {
    StepRange one;
    const auto workers = static_cast<std::int64_t>(phase.workers.size());
    one.workers = {workers, workers};
    const double batch = static_cast<double>(phase.global_batch) / static_cast<double>(workers);
    one.batch = {batch, batch};
    extend(range, one);
  }
  return range;
}

}  // namespace epocast
