// What bodies make devices send each other, by formula: sequences divided by positions, experts divided by number.
#include <catch2/catch.hpp>

#include <string>

#include "costmodels/layer_kernels.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::bodies_test {

using testing::compile_transformer;
using testing::small_mixture;
using testing::small_transformer;

namespace {

constexpr double kWidth = 64, kSequence = 16, kValue = 4;

double sent(int workers, const std::string& options, const testing::TransformerSetting& setting) {
  const testing::Star star(workers, 1e9, 1e-6);
  const TrainingStep step = compile_transformer(star.cluster(), workers, "composition", options, setting);
  return testing::sum(testing::bytes_sent_per_iteration(step.graph, static_cast<std::size_t>(workers)));
}

double period(const testing::Star& star, int workers, const std::string& options,
              const testing::TransformerSetting& setting) {
  const TrainingStep step = compile_transformer(star.cluster(), workers, "composition", options, setting);
  return testing::simulate(star.cluster(), step.graph, {.iterations = 20}).iteration;
}

double parameters(const Model& model) { return kValue * static_cast<double>(model.parameter_count()); }

/// Of the tensors whose replicas are those of experts.
double expert_parameters(const Model& model) {
  double values = 0;
  for (const Layer& layer : model.layers)
    if (layer.variant == "experts") values += static_cast<double>(layer.parameters.front().values);
  return kValue * values;
}

DividedModel divide(const Model& model, const std::string& body, const std::string& options, int parts) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  return builtin_bodies().make(body, node, node)->divide(DividedModel::whole(model), parts, node);
}

const Layer& layer_of(const Model& model, LayerKind kind) {
  return *std::find_if(model.layers.begin(), model.layers.end(),
                       [&](const Layer& layer) { return layer.kind == kind; });
}

}  // namespace

TEST_CASE("context parallelism: keys and values go round once forward, and with their gradients once backward",
          "[composition][context]") {
  const int layers = 3;
  const double batch = 8;
  const auto model = small_transformer(layers);
  for (const int c : {2, 4})
    for (const char* exchange : {"ring", "all_gather"}) {
      INFO(exchange << " of " << c);
      const double bytes = sent(c,
                                "{mesh: {context: " + std::to_string(c) +
                                    "}, body: {name: context, exchange: " + std::string(exchange) + "}}",
                                {model});
      // Keys and values of all positions; an all-gather or reduce-scatter of c ranks sends c - 1 times the vector. All
      // devices have all parameters, whose gradients are summed.
      const double key_values = 2 * batch * kSequence * kWidth * kValue;
      CHECK(bytes == Approx((c - 1) * (3 * layers * key_values + 2 * parameters(*model))).epsilon(1e-9));
    }
}

TEST_CASE("context parallelism divides work evenly; a ring hides behind attention", "[composition][context]") {
  const auto model = small_transformer(4);
  const testing::Star fast(4, 1e15, 0);
  const double alone = period(fast, 1, "{mesh: {data: 1}}", {model});
  const double updates = 1e-12 * static_cast<double>(model->parameter_count());  // every device does all
  const double even = (alone - updates) / 4 + updates,
               links = 3 * parameters(*model) / 1e15;  // no faster ones can be had
  CHECK(period(fast, 4, "{mesh: {context: 4}}", {model}) == Approx(even).margin(links));

  const testing::Star slow(4, 1e10, 0);
  const auto with = [&](const char* exchange) {
    return period(slow, 4, std::string("{mesh: {context: 4}, body: {name: context, exchange: ") + exchange + "}}",
                  {model, 8, {CollectiveAlgorithm::ring}});
  };
  CHECK(with("ring") < with("all_gather"));
}

TEST_CASE("replicas of a context axis are replicas of the data axis too", "[composition][context]") {
  const auto model = small_transformer(2);
  const double key_values = 2 * 8 * kSequence * kWidth * kValue;
  // Two teams of two pass keys and values of half the batch each; four replicas sum gradients.
  for (const char* mesh : {"{data: 2, context: 2}", "{context: 2, data: 2}"})
    CHECK(sent(4, std::string("{mesh: ") + mesh + "}", {model}) ==
          Approx(3 * 2 * key_values + 2 * 3 * parameters(*model)).epsilon(1e-9));
  const testing::Star star(8, 1e9, 1e-6);
  CHECK_THAT(testing::message([&] {
               compile_transformer(star.cluster(), 8, "composition", "{mesh: {data: 2, tensor: 2, context: 2}}",
                                   {model});
             }),
             Catch::Contains("mesh.tensor: ranks along data and context have the same parameters") &&
                 Catch::Contains("name tensor before or after both"));
}

TEST_CASE("expert parallelism: two all-to-alls a layer and direction, and replicas of two kinds",
          "[composition][experts]") {
  const int layers = 2, e = 4, d = 2;
  const double chosen = 2, batch = 16;
  const auto model = small_mixture(layers);
  const double experts = expert_parameters(*model), rest = parameters(*model) - experts;
  // Each device sends the positions of its own samples, chosen times, but for what stays with it.
  const double dispatched = 4 * layers * chosen * batch * kSequence * kWidth * kValue * (e - 1) / e;
  CHECK(sent(e, "{mesh: {expert: 4}}", {model, 16}) == Approx(dispatched + 2 * (e - 1) * rest).epsilon(1e-9));
  // With two of each expert: e teams of two, each with its part of the experts.
  for (const char* mesh : {"{data: 2, expert: 4}", "{expert: 4, data: 2}"})
    CHECK(sent(e * d, std::string("{mesh: ") + mesh + "}", {model, 16}) ==
          Approx(dispatched + 2 * (e * d - 1) * rest + 2 * (d - 1) * experts).epsilon(1e-9));
  // Positions beyond the mean travel and are computed as well.
  for (const char* option : {"capacity: 1.5", "imbalance: 1.5"})
    CHECK(sent(e, std::string("{mesh: {expert: 4}, body: {name: experts, ") + option + "}}", {model, 16}) ==
          Approx(1.5 * dispatched + 2 * (e - 1) * rest).epsilon(1e-9));
}

TEST_CASE("experts in teams: each device dispatches its positions, and the team gathers what has come",
          "[composition][experts]") {
  const int layers = 1, e = 2, t = 2;
  const double chosen = 2, batch = 8, hidden = kSequence * kWidth * kValue;  // B a sample
  const auto model = small_mixture(layers);
  const std::string sequences = "{name: tensor, sequence_parallel: true, gather_again: false}";
  const double with = sent(e * t, "{mesh: {expert: 2, tensor: 2}, body: [experts, " + sequences + "]}", {model});
  const double without = sent(e * t, "{mesh: {data: 2, tensor: 2}, body: " + sequences + "}", {model});
  // Of each tensor t all-to-alls, one for each of the team's parts: as many bytes as of whole ones in one of e teams.
  const double dispatched = 4 * layers * chosen * batch * hidden * (e - 1) / e;
  // Gathered and scattered is every copy of a position: four times in both directions of such a layer.
  const double copies = 4 * layers * (t - 1) * (chosen - 1) * batch * hidden;
  // Two replicas need not sum gradients of experts any more: the half on either team.
  const double not_summed = 2 * expert_parameters(*model);
  CHECK(with == Approx(without + dispatched + copies - not_summed).epsilon(1e-9));
}

TEST_CASE("expert parallelism divides experts' parameters; capacity adds to their work", "[composition][experts]") {
  const auto model = small_mixture(2);
  const double all = 2 * (64 * 2 * 96 + 96 * 64) * 8;  // of both layers' experts: gate and value, and back
  CHECK(expert_parameters(*model) == Approx(kValue * all));
  const DividedModel even = divide(*model, "experts", "{}", 4), more = divide(*model, "experts", "{capacity: 1.25}", 4);
  CHECK(static_cast<double>(model->parameter_count() - even.part->parameter_count()) == Approx(all * 3 / 4));
  CHECK(even.part->forward_flop() == Approx(model->forward_flop()).epsilon(1e-12));
  double experts = 0;
  for (const Layer& layer : model->layers)
    if (layer.variant == "experts" || layer.variant == "swiglu") experts += layer.forward_flop;
  CHECK(more.part->forward_flop() - even.part->forward_flop() == Approx(experts / 4).epsilon(1e-12));
}

TEST_CASE("filters divided over a team: inputs are gathered, their gradients scattered", "[composition][filters]") {
  // The network's input is everywhere and needs no gradient. Convolutions and fully connected layers gather what they
  // read and scatter its gradient; the loss gathers ten classes.
  const auto model =
      std::make_shared<const Model>(load_model_named(ConfigNode::load_text("lenet", "small.yaml"), EPOCAST_SOURCE_DIR));
  const double batch = 8, read = 6 * 14 * 14 + 16 * 5 * 5 + 120 + 84, classes = 10;
  CHECK(sent(2, "{mesh: {tensor: 2}, body: filters}", {model, 8}) ==
        Approx(batch * kValue * (2 * read + classes)).epsilon(1e-9));
  const DividedModel divided = divide(*model, "filters", "{}", 2);
  CHECK(divided.part->parameter_count() == model->parameter_count() / 2);
  CHECK(divided.part->forward_flop() == Approx(model->forward_flop() / 2).epsilon(1e-3));  // but for the loss
}

TEST_CASE("heads of a tensor-parallel team keep their size", "[composition][tensor]") {
  for (const auto& model : {small_transformer(1), small_mixture(1)}) {
    const DividedModel divided = divide(*model, "tensor", "{}", 2);
    const Layer &whole = layer_of(*model, LayerKind::attention), &part = layer_of(*divided.part, LayerKind::attention);
    const auto features = [](const Layer& layer) { return layer.input.channels / (layer.heads + 2 * layer.kv_heads); };
    CHECK(part.heads == whole.heads / 2);
    CHECK(part.kv_heads == whole.kv_heads / 2);
    CHECK(features(part) == features(whole));
  }
}

TEST_CASE("kernels of a device's part do the work of its part", "[composition]") {
  const std::vector<std::pair<std::string, std::string>> bodies{{"tensor", "{}"},
                                                                {"tensor", "{sequence_parallel: true}"},
                                                                {"context", "{}"},
                                                                {"experts", "{}"},
                                                                {"filters", "{}"}};
  for (const auto& [body, options] : bodies) {
    const auto model = body == "experts" ? small_mixture(1) : small_transformer(1);
    const DividedModel divided = divide(*model, body, options, 2);
    for (const Layer& layer : divided.part->layers) {
      if (layer.kind != LayerKind::linear) continue;
      INFO(body << " " << options << ": " << layer.name);
      double flop = 0;  // a product of m x k and k x n: 2 m n k
      for (const LayerKernel& kernel : layer_kernels(layer, 4, KernelPass::forward, {}))
        if (const auto* product = std::get_if<GemmShape>(&kernel.shape.of))
          flop += 2.0 * static_cast<double>(product->m * product->n * product->k * product->count) * kernel.repeats;
      CHECK(flop == Approx(4 * layer.forward_flop).epsilon(1e-12));
    }
  }
}

TEST_CASE("sums of a column-parallel layer's gradients hide behind those of its weights", "[composition][tensor]") {
  // Two devices, links so fast that a sum takes less than the weights' gradients. Per layer there are two products by
  // columns, and the words' at the end: so many sums of 8 x 16 x 64 values are hidden, each half a vector there and
  // back.
  const int layers = 2;
  const auto model = small_transformer(layers);
  const testing::Star star(2, 1e12, 0);
  const auto with = [&](const std::string& options) {
    return period(star, 2, "{mesh: {tensor: 2}, body: {name: tensor, " + options + "}}",
                  {model, 8, {CollectiveAlgorithm::ring}});
  };
  const double sum = 8 * kSequence * kWidth * kValue / 1e12;
  CHECK(with("overlap: false") - with("overlap: true") == Approx((2 * layers + 1) * sum).epsilon(1e-6));
  // With positions divided there is a reduce-scatter to hide, half of a sum, and as much is gathered again.
  const std::string positions = "sequence_parallel: true, overlap: ";
  CHECK(with(positions + "false") - with(positions + "true") == Approx((2 * layers + 1) * sum).epsilon(1e-6));
}

TEST_CASE("bodies that do not fit say why", "[composition]") {
  const testing::TransformerSetting dense{small_transformer(2)}, mixture{small_mixture(1)};
  const testing::Star star(8, 1e9, 1e-6);
  const auto problem = [&](const std::string& options, const testing::TransformerSetting& setting) {
    return testing::message([&] { compile_transformer(star.cluster(), 8, "composition", options, setting); });
  };
  using Catch::Contains;
  CHECK_THAT(problem("{mesh: {expert: 8}}", dense), Contains("has no layers of experts to divide"));
  CHECK_THAT(problem("{mesh: {expert: 8}, body: whole}", mixture), Contains("use body: experts"));
  CHECK_THAT(problem("{mesh: {data: 8}, body: [experts]}", mixture), Contains("the mesh has no axis 'expert'"));
  CHECK_THAT(problem("{mesh: {tensor: 8}, body: [tensor, {name: tensor}]}", dense),
             Contains("something else divides along 'tensor' already"));
  CHECK_THAT(problem("{mesh: {expert: 8}, body: {name: experts, capacity: 1, imbalance: 2}}", mixture),
             Contains("leave out one of the two"));
  CHECK_THAT(testing::message([&] { divide(*small_mixture(1), "experts", "{}", 3); }),
             Contains("an expert axis of 3 does not divide the 8 experts of 'layer.0.experts_up'"));
  CHECK_THAT(testing::message([&] { divide(*small_transformer(1), "context", "{}", 3); }),
             Contains("a context axis of 3 does not divide the 16 positions"));
}

}  // namespace epocast::bodies_test
