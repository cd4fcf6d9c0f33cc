// Tokens of a sample: each input once, however many tables look it up.
#include "experiments/model_work.hpp"

#include <catch2/catch.hpp>

#include "experiments/scenario.hpp"

namespace epocast::model_work_test {

namespace {

ScenarioSetup setup_of(const std::string& model, const std::string& dataset) {
  const Study study = parse_study(
      "study: tokens\nplatform: dgx_a100\nworkers: 1\nbatch: {global: 1}\nstrategy: "
      "single\nmodel: " +
          model + "\ndataset: {" + dataset + "}\n",
      "study.yaml");
  return read_scenario(study.scenarios.front(), builtin_registries());
}

}  // namespace

TEST_CASE("tokens are positions of each input, not of each table", "[model]") {
  const std::pair<const char*, std::int64_t> models[] = {
      {"bert_base", 512},  // words, and in which of two sentences they are
      {"ncf", 2},          // a user and an item, in two tables of features each
      {"gpt2", 1024},      // positions are no words
      {"t5_base", 512},    // of both texts, which are one input, one
      {"gnmt", 50},        // likewise, with a table for each
      {"resnet50", 0},
  };
  for (const auto& [model, tokens] : models) {
    CAPTURE(model);
    CHECK(tokens_per_sample(setup_of(model, "samples: 1000").model) == tokens);
  }
  CHECK(setup_of("bert_base", "tokens: 1048576").samples == 2048);
}

}  // namespace epocast::model_work_test
