#include "strategies/bodies/experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/words.hpp"
#include "strategies/bodies/layer_part.hpp"

namespace epocast {
namespace {

class ExpertDivision {
 public:
  ExpertDivision(DividedModel model, int parts, double load, const ConfigNode& place)
      : divided_(std::move(model)),
        part_(std::make_shared<Model>(*divided_.part)),
        parts_(parts),
        load_(load),
        place_(place),
        away_(part_->layers.size(), false) {}

  DividedModel divide() {
    bool any = false;
    for (std::size_t l = 0; l < part_->layers.size(); ++l) {
      const Layer& layer = part_->layers[l];
      if (layer.variant == "experts") {
        any = true;
        divide_experts(l);
      } else if (!layer.inputs.empty() && std::ranges::all_of(layer.inputs, [&](int input) { return away(input); })) {
        away_[l] = true;
        load(part_->layers[l], true, true);
      }
    }
    if (!any)
      throw place_.error(fmt::format("{} has no layers of experts to divide; leave the expert axis out", part_->name));
    divided_.part = std::move(part_);
    return std::move(divided_);
  }

 private:
  bool away(int layer) const { return away_[static_cast<std::size_t>(layer)]; }

  void divide_experts(std::size_t l) {
    Layer& layer = part_->layers[l];
    if (layer.experts % parts_ != 0)
      throw place_.error(fmt::format("an expert axis of {} does not divide the {} experts of '{}'; use a divisor",
                                     parts_, layer.experts, layer.name));
    const bool combines = layer.parameters.size() == 1;  // without a router: the last of a chain
    const double copies = load_ * layer.experts_per_position;
    const Shape input = layer.input, output = layer.output;
    load(layer, true, !combines);
    SampleExchanges& own = divided_.exchanges[l];
    const auto all_to_all = [&](std::vector<SampleExchange>& to, const char* name, const Shape& shape) {
      to.push_back(
          {name, CollectiveOp::all_to_all, copies * static_cast<double>(shape.values()), false, &StageRanks::expert});
    };
    if (!away(layer.inputs.front())) {
      all_to_all(own.before_forward, "dispatch", input);
      if (layer.backward_data_flop > 0) all_to_all(own.after_backward, "gradients of dispatched", input);
      layer.inner_values += std::llround(copies * static_cast<double>(input.values()));  // what has come
    }
    if (combines) {
      all_to_all(own.after_forward, "results", output);
      if (layer.needs_gradient) all_to_all(own.before_backward, "gradients of results", output);
    }
    divided_.dispatched[l] = copies;
    away_[l] = !combines;
    layer.experts /= parts_;
    layer.parameters.front().values /= parts_;
  }

  /// Of a layer that works on an expert's positions.
  void load(Layer& layer, bool input, bool output) const {
    if (load_ == 1) return;
    const auto more = [this](std::int64_t& n) { n = std::llround(std::ceil(load_ * static_cast<double>(n) - 1e-9)); };
    if (input) more(layer.input.width), more(layer.input_values);
    if (output) more(layer.output.width), more(layer.inner_values), more(layer.mask_values);
    scale_work(layer, load_);
  }

  DividedModel divided_;
  std::shared_ptr<Model> part_;
  int parts_;
  double load_;
  const ConfigNode& place_;
  std::vector<bool> away_;  ///< by layer: its output is where experts are
};

double load_of(const ConfigNode& options) {
  if (options.has("capacity") && options.has("imbalance"))
    throw options.at("imbalance").error("a capacity fixes what each expert works on; leave out one of the two");
  if (options.has("capacity")) return options.at("capacity").as_double({0.1, 100});
  return options.get("imbalance", 1.0, Range{1, 1000});
}

}  // namespace

ExpertBody::ExpertBody(const ConfigNode& options) : load_(load_of(options)), is_imbalance_(options.has("imbalance")) {}

EntryInfo ExpertBody::info() {
  return {"experts",
          "experts divided over the axis `expert`; positions travel to them and back",
          {{"capacity", "", "0.1 .. 100", "none",
            "positions that every expert works on, over the mean: the rest is left out, what lacks is padding"},
           {"imbalance", "", "1 .. 1000", "1", "positions of the busiest device over the mean"}}};
}

DividedModel ExpertBody::divide(DividedModel model, int parts, const ConfigNode& place) const {
  if (is_imbalance_ && load_ > parts)
    throw place.error(
        fmt::format("an imbalance of {} is more than the busiest of {} can have: {} times the mean, which "
                    "is everything",
                    load_, counted(parts, "device"), parts));
  return ExpertDivision(std::move(model), parts, load_, place).divide();
}

}  // namespace epocast
