#include "experiments/learning/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/scenario.hpp"

namespace epocast {
namespace {

using learning::OptimizerSettings;
using learning::ProblemInfo;
using learning::ProblemOption;
using learning::RateRule;
using learning::RateScaling;

constexpr double kLeastRate = 1e-300;  // positive

/// `problem: digits` or `problem: {name: digits, hidden: 64}`.
void read_problem(const ConfigNode& node, LearningSettings& out) {
  const ConfigNode name = node.is_map() ? node.at("name") : node;
  out.problem = name.as_string();
  const std::vector<ProblemInfo>& all = learning::problems();
  const auto found = std::ranges::find(all, out.problem, &ProblemInfo::name);
  if (found == all.end()) {
    std::vector<std::string> names;
    for (const ProblemInfo& problem : all) names.push_back(problem.name);
    throw name.error("unknown problem '" + out.problem + "'" + name_hint(out.problem, names));
  }
  for (const ProblemOption& option : found->options) {
    out.options.numbers[option.name] = option.fallback;
    if (!node.is_map() || !node.has(option.name)) continue;
    const ConfigNode value = node.at(option.name);
    const Range range{option.min, option.max};
    out.options.numbers[option.name] = option.whole ? static_cast<double>(value.as_int(range)) : value.as_double(range);
  }
  if (out.problem == "quadratic" && node.is_map() && node.has("spectrum")) {
    for (const ConfigNode& value : node.at("spectrum").items())
      out.options.spectrum.push_back(value.as_double(Range{kLeastRate, 1e300}));
    if (out.options.spectrum.empty()) throw node.at("spectrum").error("give at least one curvature");
  }
  if (node.is_map()) node.check_all_read();
}

OptimizerSettings read_optimizer(const ConfigNode& node) {
  OptimizerSettings out;
  const ConfigNode named = node.is_map() ? node.at("name") : node;
  const std::string name = named.as_string();
  if (name != "sgd" && name != "adam")
    throw named.error("unknown optimizer '" + name + "'" + name_hint(name, {"sgd", "adam"}));
  if (!node.is_map()) return {.kind = name == "adam" ? OptimizerSettings::adam : OptimizerSettings::sgd};
  if (name == "adam") {
    out.kind = OptimizerSettings::adam;
    out.beta1 = node.get("beta1", out.beta1, Range{0, 0.999999});
    out.beta2 = node.get("beta2", out.beta2, Range{0, 0.999999999});
    out.epsilon = node.get("epsilon", out.epsilon, Range{kLeastRate, 1});
  } else {
    out.momentum = node.get("momentum", out.momentum, Range{0, 0.999999});
  }
  node.check_all_read();
  return out;
}

double positive(const ConfigNode& node) {
  const double value = node.as_double();
  if (!(value > 0)) throw node.error(fmt::format("{} is not positive; give a number above 0", node.as_string()));
  return value;
}

/// `{epoch: 80, factor: 0.1}`, or `epoch: saturated`.
RateRule::Decay read_decay(const ConfigNode& node) {
  RateRule::Decay out;
  const ConfigNode epoch = node.at("epoch");
  out.at_saturation = epoch.is_scalar() && epoch.as_string() == "saturated";
  if (!out.at_saturation) out.epoch = epoch.as_double(Range{0, 1e6});
  out.factor = positive(node.at("factor"));
  out.unscale = node.get("unscale", false);
  return out;
}

/// `rate: 0.1`, or with `scaling`, `warmup` and `decay`.
RateRule read_rate(const ConfigNode& node) {
  if (!node.is_map()) return {.rate = positive(node)};
  RateRule out{.rate = positive(node.at("base"))};
  out.reference = node.get("batch", std::int64_t{0}, Range{1, 1e12});
  if (node.has("scaling")) {
    const std::string word = node.at("scaling").as_string();
    if (word != "none" && word != "linear" && word != "root")
      throw node.at("scaling").error("unknown scaling '" + word + "'" + name_hint(word, {"none", "linear", "root"}));
    out.scaling = word == "linear" ? RateScaling::linear : word == "root" ? RateScaling::root : RateScaling::none;
  }
  out.warmup = node.get("warmup", 0.0, Range{0, 1e6});
  for (const char* key : {"warmup", "batch"})
    if (node.has(key) && out.scaling == RateScaling::none)
      throw node.at(key).error(
          fmt::format("{} does nothing without scaling: the rate grows from base to what scaling makes of it; give "
                      "scaling: linear or root",
                      key));
  if (node.has("decay"))
    for (const ConfigNode& entry : node.at("decay").items()) out.decays.push_back(read_decay(entry));
  node.check_all_read();
  return out;
}

void read_stop(const ConfigNode& node, LearningSettings& out) {
  if (node.has("target")) {
    const ConfigNode target = node.at("target");
    if (!target.is_map() || target.has("loss") == target.has("accuracy"))
      throw target.error("give one of loss and accuracy, as in `target: {accuracy: 0.9}`");
    if (target.has("loss")) out.stop.loss = target.at("loss").as_double();
    if (target.has("accuracy")) {
      out.stop.accuracy = target.at("accuracy").as_double();
      if (out.problem == "quadratic") throw target.at("accuracy").error("the quadratic has only a loss");
      if (out.problem != "phantoms" && *out.stop.accuracy > 1)
        throw target.at("accuracy").error("an accuracy is a share of right answers, 0 to 1");
    }
    out.stop.at_target = target.get("stop", false);
    target.check_all_read();
  }
  if (node.has("until")) {
    const ConfigNode until = node.at("until");
    if (!until.is_map() || (!until.has("time") && !until.has("samples")))
      throw until.error("give time, samples or both, as in `until: {time: 10 min}`");
    if (until.has("time")) out.stop.time = until.at("time").as_seconds(Range{0}).value;
    if (until.has("samples"))
      out.stop.samples = static_cast<std::int64_t>(until.at("samples").as_double(Range{1, 1e15}));
    until.check_all_read();
  }
  out.stop.saturations = out.rate.saturations();
  if (!node.has("patience")) {
    if (out.stop.saturations > 0)
      throw node.at("rate").error(
          "decays when accuracy is saturated, which patience would tell: say, as in "
          "`patience: {gain: 0.1, epochs: 50}`, which gain in how many epochs is too little");
    return;
  }
  const ConfigNode patience = node.at("patience");
  out.stop.gain = patience.get("gain", 0.0, Range{0, 1e6});
  out.stop.patience = patience.at("epochs").as_double(Range{1e-6, 1e6});
  if (out.problem == "quadratic") throw patience.error("patience is about accuracy, and the quadratic has only a loss");
  patience.check_all_read();
}

/// What the strategy's option does to gradients.
learning::Compression read_compression(const ConfigNode& node, const std::string& strategy, const ConfigNode& options,
                                       const learning::Scheme& scheme) {
  learning::Compression out;
  if (!options.is_map() || !options.has("compression")) return out;
  const ConfigNode method = options.at("compression");
  out.method = learning::compression_method(method.as_string());
  out.share = options.get("top_k", out.share);
  if (out.method != learning::Compression::none && scheme.family != learning::Scheme::synchronous &&
      strategy != "parameter_server")
    throw node.error("what compression does to what '" + strategy +
                     "' sends is not known; leave out strategy.compression, or the learning");
  return out;
}

}  // namespace

learning::ReplaySettings LearningSettings::replay() const {
  learning::ReplaySettings out;
  out.scheme = scheme;
  out.optimizer = optimizer;
  out.compression = compression;
  out.elasticity = elasticity;
  out.mixing = mixing;
  out.evaluations = evaluations;
  out.stop = stop;
  out.rate = [rule = rate](const learning::TrainingState& state) {
    return rule.at(state.epoch, state.batch, state.saturations);
  };
  return out;
}

std::shared_ptr<const LearningSettings> read_learning(const ConfigNode& node, const std::string& strategy,
                                                      const ConfigNode& options,
                                                      const std::vector<PhaseSettings>& phases,
                                                      std::shared_ptr<const BatchDoubling> adaptive) {
  if (!node.is_map())
    throw node.error("write what is learned and how fast, as in `learning: {problem: digits, rate: 0.1}`");
  LearningSettings out;
  out.place = node.where();
  if (node.has("given")) {
    if (phases.size() > 1 || adaptive)
      throw node.at("given").error("phases of a schedule have their own epochs; leave this out");
    out.given = read_convergence(node.at("given"));
    node.check_all_read();
    return std::make_shared<const LearningSettings>(std::move(out));
  }
  out.adaptive = std::move(adaptive);
  try {
    out.scheme = learning::scheme_of(strategy);
  } catch (const std::invalid_argument& problem) {
    throw node.error(problem.what());
  }
  // A strategy of another name than its own has its schedule in it.
  if (out.scheme.family == learning::Scheme::pipeline && options.is_map() && options.has("schedule"))
    out.scheme.current_weights = options.at("schedule").as_string() == "threaded";
  if (out.scheme.family == learning::Scheme::pipeline && options.is_map() && options.has("synchronisation"))
    throw options.at("synchronisation")
        .error("of pipelines, those whose replicas agree by all_reduce are replayed; leave this out");
  out.compression = read_compression(node, strategy, options, out.scheme);
  read_problem(node.at("problem"), out);
  if (node.has("optimizer")) out.optimizer = read_optimizer(node.at("optimizer"));
  out.rate = read_rate(node.at("rate"));
  if (out.rate.reference == 0) out.rate.reference = phases.front().global_batch;
  read_stop(node, out);
  out.elasticity = node.get("elasticity", out.elasticity, Range{1e-6, 1});
  out.mixing = node.get("mixing", out.mixing, Range{1e-6, 1});
  out.evaluations = node.get("evaluations", out.evaluations, Range{1e-6, 1e6});
  if (node.has("epochs")) {
    out.epochs = node.at("epochs").as_int(Range{1, 1e6});
    if (phases.size() > 1) throw node.at("epochs").error("phases of a schedule have their own epochs; leave this out");
  }
  out.seeds = static_cast<int>(node.get("seeds", std::int64_t{1}, Range{1, 1000}));
  const auto samples = static_cast<std::int64_t>(out.options.get("samples", 0));
  for (const PhaseSettings& phase : phases)
    if (phase.global_batch > samples)
      throw node.at("problem").error(fmt::format(
          "a global batch of {} is larger than the problem's epoch of {} samples; use a smaller batch or more samples",
          phase.global_batch, samples));
  node.check_all_read();
  return std::make_shared<const LearningSettings>(std::move(out));
}

}  // namespace epocast
