#include "strategies/layerwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/layerwise/search.hpp"
#include "strategies/step/composition_text.hpp"
#include "strategies/step/options.hpp"

namespace epocast {
namespace {

constexpr Range kDegree{1, 1e6};

/// The degrees and devices of a map such as {n: 4, c: 2, devices: [0, 2]}, without a look at what they are for.
Configuration parse(const ConfigNode& node) {
  if (!node.is_map()) throw node.error("write degrees of parallelism as in {n: 4, c: 2}");
  Configuration out;
  for (const Dimension d : kAllDimensions)
    out.degrees[d] = static_cast<int>(node.get(to_string(d), std::int64_t{1}, kDegree));
  if (node.has("devices"))
    for (const ConfigNode& item : node.at("devices").items())
      out.devices.push_back(static_cast<int>(item.as_int(Range{0, 1e6})));
  node.check_all_read();
  return out;
}

std::string divisors_up_to(std::int64_t workers, std::int64_t limit) {
  std::vector<std::int64_t> out;
  for (std::int64_t degree = 1; degree <= std::min(workers, limit); ++degree)
    if (workers % degree == 0) out.push_back(degree);
  return fmt::format("{}", fmt::join(out, ", "));
}

const char* meaning(Dimension dimension, const LayerOperator& op) {
  switch (dimension) {
    case Dimension::n: return "samples";
    case Dimension::c: return op.channel_groups == op.output.channels ? "channels" : "heads";
    case Dimension::h: return "rows";
    case Dimension::w: return "columns";
    case Dimension::k: return "values to sum over";
  }
  return "";
}

/// The workers that an operator may be on.
struct WorkerRange {
  std::size_t first = 0, count = 0;
};

WorkerRange workers_of(const LayerwisePipeline& pipeline, std::size_t op) {
  const std::size_t stage = pipeline.stage_of_operator(op);
  return {pipeline.first_worker(stage), pipeline.stages[stage].workers};
}

/// A stage's workers are along tensor. Stages of unequal length are no grid: there is one axis of all workers.
std::vector<std::pair<std::string, int>> axes_of(const LayerwisePipeline& pipeline, int workers) {
  const auto& stages = pipeline.stages;
  if (std::ranges::any_of(stages, [&](const auto& stage) { return stage.workers != stages.front().workers; }))
    return {{"tensor", workers}};
  return {{"pipeline", static_cast<int>(stages.size())}, {"tensor", static_cast<int>(stages.front().workers)}};
}

/// Refuses what the operator or the machine cannot have; `place(d)` is where a dimension's degree is written.
template <class Place>
void check(const Configuration& of, const LayerOperator& op, const DimensionLimits& limits, const WorkerRange& workers,
           const ConfigNode& node, Place place) {
  const auto count = static_cast<std::int64_t>(workers.count);
  for (const Dimension d : kAllDimensions) {
    const std::int64_t limit = limits[static_cast<std::size_t>(d)];
    if (of.degrees[d] <= limit) continue;
    throw place(d).error(
        limit == 1 ? fmt::format("'{}' cannot be divided along {}; leave {} out", op.name, to_string(d), to_string(d))
                   : fmt::format("'{}' has {} {}, which {} devices cannot divide; use one of {}", op.name, limit,
                                 meaning(d, op), of.degrees[d], divisors_up_to(count, limit)));
  }
  const std::int64_t product = of.degrees.product();
  if (product > count || count % product != 0)
    throw node.error(fmt::format(
        "the degrees {} take {} devices, which {} {} workers; their product must be one of {}", of.degrees.text(),
        product, product > count ? "is more than the" : "does not divide the", count, divisors_up_to(count, count)));
  if (of.devices.empty()) return;
  const ConfigNode devices = node.at("devices");
  if (static_cast<std::int64_t>(of.devices.size()) != product)
    throw devices.error(
        fmt::format("{} devices for degrees {}, which take {}", of.devices.size(), of.degrees.text(), product));
  for (std::size_t i = 0; i < of.devices.size(); ++i) {
    const auto device = static_cast<std::size_t>(of.devices[i]);
    if (device < workers.first || device >= workers.first + workers.count)
      throw devices.error(fmt::format("there is no worker {}{}; they are {} .. {}", device,
                                      workers.first > 0 ? " in this stage" : "", workers.first,
                                      workers.first + workers.count - 1));
    if (std::count(of.devices.begin(), of.devices.end(), of.devices[i]) > 1)
      throw devices.error(fmt::format("worker {} is named twice", of.devices[i]));
  }
}

}  // namespace

Degrees image_degrees(std::size_t workers) {
  Degrees out;
  out[Dimension::n] = static_cast<int>(workers);
  return out;
}

Degrees one_weird_trick_degrees(const OperatorNetwork& network, std::size_t op, std::size_t workers) {
  if (!network.at(op).is_dense) return image_degrees(workers);
  Degrees out;
  out[Dimension::c] = static_cast<int>(workers);
  return out;
}

EntryInfo Layerwise::info() {
  return {
      "layerwise",
      "every operator divided by degrees of its own: images, channels, rows, columns, sums (DeePa)",
      {{"configuration", "", "image, one_weird_trick, search, or a map", "image",
        "degrees by operator, as in {conv1: {n: 4}, fc6: {c: 2, devices: [0, 2]}}; or a rule that makes them"},
       {"rest", "", "map", "images over all workers", "degrees of operators that the configuration leaves out"},
       {"exchange", "", "all_reduce | host_server | device_servers | sharded_servers", "all_reduce",
        "how gradients of what several devices hold are added up"},
       {"server_rate", "bytes/s", "> 0", "required", "of the server in host memory (exchange: host_server)"},
       {"overlap", "", "true | false", "true", "gradients travel during the backward pass, or after it"},
       {"placement", "", "packed | spread", "packed",
        "operators with fewer devices are on the first workers, or evenly over all"},
       {"schedule", "", "map", "the whole batch at once",
        "{name: 1f1b or gpipe, micro_batches: N}: the batch in parts, gradients are exchanged after the last"},
       {"stages", "", "list of {from, workers}", "one",
        "runs of operators on workers of their own: a pipeline; `from` is a stage's first operator"},
       {"bandwidth", "bytes/s", "> 0", "required", "of a device's link, as a search sees it (configuration: search)"},
       {"dimensions", "", "list of n, c, h, w, k", "[n, c, h, w]", "what a search may divide"}}};
}

Layerwise::Layerwise(const ConfigNode& options)
    : Layerwise(options, options.has("schedule") ? std::optional(options.at("schedule")) : std::nullopt) {}

Layerwise::Layerwise(const ConfigNode& options, const AroundBody& around) : Layerwise(options, around.schedule) {
  if (around.mesh.extent("data") != 1)
    throw around.mesh.place().at("data").error(
        "samples are a dimension of each operator's degrees, n; make all workers the axis tensor, and leave this out");
  const Part& said = around.synchronisation;
  const std::vector<std::string> keys = said.options.keys();
  const bool plain =
      said.name == "all_reduce" && std::ranges::all_of(keys, [](const std::string& key) { return key == "name"; });
  if (!plain || (!keys.empty() && replay_.exchange != GradientExchange::all_reduce))
    throw said.place.error(
        "body layerwise says itself how gradients are added up, as in body: {name: layerwise, exchange: "
        "sharded_servers}; leave this out");
}

Layerwise::Layerwise(const ConfigNode& options, std::optional<ConfigNode> schedule_options)
    : options_(options), schedule_(std::move(schedule_options)) {
  if (options.has("configuration") && options.at("configuration").is_map()) {
    kind_ = Kind::given;
    const ConfigNode map = options.at("configuration");
    for (const std::string& name : map.keys()) parse(map.at(name));
  } else {
    kind_ = choose(options, "configuration",
                   {{"image", Kind::image}, {"one_weird_trick", Kind::one_weird_trick}, {"search", Kind::search}},
                   Kind::image);
  }
  if (options.has("rest")) {
    if (kind_ != Kind::given) throw options.at("rest").error("nothing is left out unless configuration is a map");
    parse(options.at("rest"));
  }
  using enum GradientExchange;
  replay_.exchange = choose(options, "exchange",
                            {{"all_reduce", all_reduce},
                             {"host_server", host_server},
                             {"device_servers", device_servers},
                             {"sharded_servers", sharded_servers}},
                            all_reduce);
  if (replay_.exchange == host_server)
    replay_.server_rate = options.at("server_rate").as_bytes_per_second(Range{1, 1e18});
  else if (options.has("server_rate"))
    throw options.at("server_rate")
        .error("only a server in host memory has a rate of its own; add exchange: host_server");
  replay_.overlap = options.get("overlap", true);
  if (schedule_) {
    const ConfigNode& schedule = *schedule_;
    pipeline_.schedule =
        choose(schedule, "name", {{"1f1b", PipelineSchedule::one_f_one_b}, {"gpipe", PipelineSchedule::gpipe}},
               PipelineSchedule::one_f_one_b);
    pipeline_.micro_batches = static_cast<int>(schedule.get("micro_batches", std::int64_t{1}, Range{1, 1e5}));
    schedule.check_all_read();
    if (kind_ == Kind::search)
      throw schedule.error("configuration: search takes the whole batch at once; `epocast layerwise` searches with it");
  }
  if (options.has("stages")) {
    for (const ConfigNode& stage : options.at("stages").items()) {
      if (pipeline_.stages.empty() == stage.has("from"))
        throw stage.error(pipeline_.stages.empty()
                              ? "the first stage begins with the first operator; leave 'from' out"
                              : "say with which operator the stage begins, as in {from: fc6, workers: 2}");
      pipeline_.stages.push_back({0, static_cast<std::size_t>(stage.at("workers").as_int(Range{1, 1e6}))});
      if (stage.has("from")) stage.at("from").as_string();
      stage.check_all_read();
    }
    if (kind_ == Kind::search)
      throw options.at("stages").error(
          "configuration: search knows no stages; `epocast layerwise --stages` finds them");
  }
  search_.places =
      choose(options, "placement", {{"packed", PlaceRule::packed}, {"spread", PlaceRule::spread}}, PlaceRule::packed);
  search_.exchange = replay_.exchange;
  search_.server_rate = replay_.server_rate;
  for (const char* key : {"bandwidth", "node_bandwidth", "dimensions"})
    if (options.has(key) && kind_ != Kind::search)
      throw options.at(key).error("only a search looks at this; set configuration: search");
  if (kind_ != Kind::search) return;
  search_.links.device = options.at("bandwidth").as_bytes_per_second(Range{1, 1e18});
  if (options.has("node_bandwidth"))
    search_.links.node = options.at("node_bandwidth").as_bytes_per_second(Range{1, 1e18});
  if (!options.has("dimensions")) return;
  search_.dimensions.clear();
  for (const ConfigNode& item : options.at("dimensions").items()) {
    const std::string word = item.as_string();
    std::vector<std::string> words;
    for (const Dimension d : kAllDimensions) words.emplace_back(to_string(d));
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) throw item.error("unknown dimension '" + word + "'" + name_hint(word, words));
    search_.dimensions.push_back(kAllDimensions[found - words.begin()]);
  }
}

std::shared_ptr<const OperatorNetwork> Layerwise::network_of(const StrategyContext& context,
                                                             const WorkloadTrace& trace) {
  return std::make_shared<const OperatorNetwork>(context.model != nullptr ? *context.model : model_of(trace));
}

Configuration Layerwise::image(const OperatorNetwork& network, std::size_t op, std::int64_t batch,
                               const LayerwisePipeline& pipeline) const {
  const WorkerRange workers = workers_of(pipeline, op);
  const Degrees degrees = kind_ == Kind::one_weird_trick ? one_weird_trick_degrees(network, op, workers.count)
                                                         : image_degrees(workers.count);
  const ConfigNode place = options_.has("configuration") ? options_.at("configuration") : options_;
  check({degrees, {}}, network.at(op), network.limits(op, batch), workers, place, [&](Dimension) { return place; });
  return {degrees, {}};
}

Configuration Layerwise::read(const ConfigNode& node, const OperatorNetwork& network, std::size_t op,
                              std::int64_t batch, const LayerwisePipeline& pipeline) const {
  Configuration out = parse(node);
  check(out, network.at(op), network.limits(op, batch), workers_of(pipeline, op), node,
        [&](Dimension d) { return node.has(to_string(d)) ? node.at(to_string(d)) : node; });
  return out;
}

LayerwisePipeline Layerwise::pipeline(const StrategyContext& context, const OperatorNetwork& network) const {
  LayerwisePipeline out = pipeline_;
  if (context.global_batch % out.micro_batches != 0)
    throw schedule_->at("micro_batches")
        .error(fmt::format("{} micro-batches do not divide a batch of {}; use one of {}", out.micro_batches,
                           context.global_batch, divisors_up_to(context.global_batch, context.global_batch)));
  if (out.stages.empty()) {
    out.stages = LayerwisePipeline::single(context.workers.size()).stages;
    return out;
  }
  const std::vector<ConfigNode> stages = options_.at("stages").items();
  std::vector<std::string> names;
  for (const LayerOperator& op : network.operators()) names.push_back(op.name);
  std::size_t workers = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    workers += out.stages[s].workers;
    if (s == 0) continue;
    const ConfigNode from = stages[s].at("from");
    const auto found = std::ranges::find(names, from.as_string());
    if (found == names.end())
      throw from.error("the network has no operator '" + from.as_string() + "'" + name_hint(from.as_string(), names));
    out.stages[s].first_operator = static_cast<std::size_t>(found - names.begin());
    if (out.stages[s].first_operator <= out.stages[s - 1].first_operator)
      throw from.error(fmt::format("'{}' does not come after the first operator of the stage before, '{}'",
                                   from.as_string(), names[out.stages[s - 1].first_operator]));
  }
  if (workers != context.workers.size())
    throw options_.at("stages").error(
        fmt::format("the stages have {} workers, the study {}", workers, context.workers.size()));
  return out;
}

std::vector<Configuration> Layerwise::configurations(const StrategyContext& context, const OperatorNetwork& network,
                                                     TileTimes& times, const LayerwisePipeline& pipeline) const {
  const std::int64_t batch = context.global_batch / pipeline.micro_batches;
  std::vector<Configuration> out;
  if (kind_ == Kind::search) {
    CostSettings settings = search_;
    if (settings.links.node.value > 0) settings.links.node_of = node_numbers(context.cluster, context.workers);
    const Precision precision = times.whole().precision;
    const double value_bytes = bytes_per_value(precision);
    try {
      const CostTables tables = cost_tables(network, times, context.global_batch, context.workers.size(), value_bytes,
                                            optimizer_bytes_per_value(context.optimizer, precision), settings);
      for (const OperatorChoice& choice : search(tables).operators) out.push_back({choice.degrees, {}});
    } catch (const SearchTooLarge& problem) {
      throw options_.at("configuration").error(problem.what());
    }
    return out;
  }
  if (kind_ != Kind::given) {
    for (std::size_t op = 0; op < network.size(); ++op) out.push_back(image(network, op, batch, pipeline));
    return out;
  }
  const ConfigNode map = options_.at("configuration");
  std::vector<std::optional<ConfigNode>> given(network.size());
  std::vector<std::string> names;
  for (const LayerOperator& op : network.operators()) names.push_back(op.name);
  for (const std::string& name : map.keys()) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw map.at(name).error("the network has no operator '" + name + "'" + name_hint(name, names));
    given[static_cast<std::size_t>(found - names.begin())] = map.at(name);
  }
  for (std::size_t op = 0; op < network.size(); ++op)
    out.push_back(given[op]              ? read(*given[op], network, op, batch, pipeline)
                  : options_.has("rest") ? read(options_.at("rest"), network, op, batch, pipeline)
                                         : image(network, op, batch, pipeline));
  return out;
}

TrainingStep Layerwise::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = context.trace(context.worker_batch());
  const std::shared_ptr<const OperatorNetwork> network = network_of(context, trace);
  TileTimes times(context, *network);
  const LayerwisePipeline stages = pipeline(context, *network);
  LayerwisePlan plan = make_plan(network, configurations(context, *network, times, stages), context.global_batch,
                                 bytes_per_value(trace.precision), stages, search_.places);
  plan.gradient_bytes = trace.gradient_value_bytes();
  TrainingStep step = layerwise_step(context, plan, times, replay_);
  step.composition = text_of({.mesh = axes_of(stages, static_cast<int>(context.workers.size())),
                              .schedule = stages.schedule == PipelineSchedule::gpipe ? "gpipe" : "1f1b",
                              .micro_batches = stages.micro_batches,
                              .bodies = {"layerwise"},
                              .synchronisation = to_string(replay_.exchange)});
  return step;
}

}  // namespace epocast
