#include "experiments/learning/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "experiments/line_plot.hpp"
#include "experiments/output.hpp"
#include "sim/config.hpp"

namespace epocast {
namespace {

using learning::CurvePoint;
using learning::LearningOutcome;
using nlohmann::json;

/// JSON has no infinities and no NaN.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
double number(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

json pack(const CurvePoint& p) {
  return {p.time,          p.epoch, p.bytes, number(p.loss), p.accuracy ? number(*p.accuracy) : json("none"),
          number(p.theta), p.rate,  p.phase};
}

CurvePoint unpack(const json& value) {
  CurvePoint p{value[0], value[1], value[2], number(value[3]), {}, number(value[5]), value[6], value[7]};
  if (!value[4].is_string()) p.accuracy = number(value[4]);
  return p;
}

double value_of(const CurvePoint& point, const std::string& column) {
  if (column == "time_s") return point.time;
  if (column == "epoch") return point.epoch;
  if (column == "bytes") return point.bytes;
  if (column == "loss") return point.loss;
  if (column == "theta") return point.theta;
  if (column == "rate") return point.rate;
  return point.accuracy.value_or(std::numeric_limits<double>::quiet_NaN());
}

PlotLine line_of(const ScenarioResult& result, const std::string& x, const std::string& y) {
  PlotLine line{result.scenario.empty() ? result.study : result.scenario, {}};
  const std::vector<LearningOutcome> outcomes = unpack_curves(result.curves);
  std::size_t points = 0;
  for (const LearningOutcome& outcome : outcomes) points = std::max(points, outcome.curve.size());
  for (std::size_t n = 0; n < points; ++n) {
    double at = 0, sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    int count = 0;
    for (const LearningOutcome& outcome : outcomes) {
      if (n >= outcome.curve.size()) continue;
      const double value = value_of(outcome.curve[n], y);
      if (!std::isfinite(value)) continue;
      at += value_of(outcome.curve[n], x);
      sum += value;
      low = std::min(low, value);
      high = std::max(high, value);
      ++count;
    }
    if (count == 0) continue;
    line.points[at / count] = sum / count;
    if (count > 1) line.band[at / count] = {low, high};
  }
  return line;
}

}  // namespace

std::string pack_curves(const std::vector<LearningOutcome>& outcomes) {
  json list = json::array();
  for (const LearningOutcome& outcome : outcomes) {
    json curve = json::array();
    for (const CurvePoint& point : outcome.curve) curve.push_back(pack(point));
    json entry{{"curve", std::move(curve)}, {"best", pack(outcome.best)}};
    if (outcome.reached) entry["reached"] = pack(*outcome.reached);
    if (outcome.diverged) entry["diverged"] = pack(*outcome.diverged);
    if (outcome.no_gain) entry["no_gain"] = pack(*outcome.no_gain);
    list.push_back(std::move(entry));
  }
  return list.dump();
}

std::vector<LearningOutcome> unpack_curves(const std::string& text) {
  std::vector<LearningOutcome> out;
  if (text.empty()) return out;
  for (const json& entry : json::parse(text)) {
    LearningOutcome& outcome = out.emplace_back();
    for (const json& point : entry.at("curve")) outcome.curve.push_back(unpack(point));
    outcome.best = unpack(entry.at("best"));
    if (entry.contains("reached")) outcome.reached = unpack(entry.at("reached"));
    if (entry.contains("diverged")) outcome.diverged = unpack(entry.at("diverged"));
    if (entry.contains("no_gain")) outcome.no_gain = unpack(entry.at("no_gain"));
  }
  return out;
}

void write_curves_csv(std::ostream& out, const std::vector<ScenarioResult>& results) {
  std::vector<std::string> axes;
  for (const ScenarioResult& result : results)
    for (const auto& [axis, value] : result.axes)
      if (std::ranges::find(axes, axis) == axes.end()) axes.push_back(axis);
  out << "study";
  for (const std::string& axis : axes) out << ',' << csv_field(axis);
  out << ",seed,time_s,epoch,bytes,loss,accuracy,theta,rate,phase\n";
  const auto cell = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); };
  for (const ScenarioResult& result : results) {
    std::string head = csv_field(result.study);
    for (const std::string& axis : axes) {
      const auto found = std::ranges::find(result.axes, axis, &std::pair<std::string, std::string>::first);
      head += ',' + (found == result.axes.end() ? "" : csv_field(found->second));
    }
    const std::vector<LearningOutcome> outcomes = unpack_curves(result.curves);
    for (std::size_t seed = 0; seed < outcomes.size(); ++seed)
      for (const CurvePoint& p : outcomes[seed].curve)
        out << fmt::format("{},{},{},{},{},{},{},{},{},{}\n", head, seed + 1, cell(p.time), cell(p.epoch),
                           cell(p.bytes), cell(p.loss), p.accuracy ? cell(*p.accuracy) : "", cell(p.theta),
                           cell(p.rate), p.phase + 1);
  }
}

std::vector<std::string> curve_columns() { return {"time_s", "epoch", "bytes", "loss", "accuracy", "theta", "rate"}; }

std::string curves_svg(const std::vector<ScenarioResult>& results, const std::string& x, const std::string& y) {
  const std::vector<std::string> columns = curve_columns();
  for (const std::string& column : {x, y})
    if (std::ranges::find(columns, column) == columns.end())
      throw ConfigError("curves have no column '" + column + "'" + name_hint(column, columns));
  std::vector<PlotLine> lines;
  for (const ScenarioResult& result : results) {
    PlotLine line = line_of(result, x, y);
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  if (lines.empty()) throw ConfigError("--plot: no curve has numbers in '" + y + "'");
  return lines_svg(lines, x, y, false);
}

}  // namespace epocast
