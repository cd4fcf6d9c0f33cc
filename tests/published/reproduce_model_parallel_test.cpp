// Model parallelism of Eserol 2019, and GPipe's bubble, against the published numbers.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/gpipe/targets.hpp"
#include "experiments/reproduce/report.hpp"

namespace epocast::reproduce_model_parallel_test {

namespace {

TargetResult result_of(const Target& target) {
  const Registries registries = builtin_registries();
  return reproduce(target, {registries, available_processors()});
}

const TargetResult& model_parallel() {
  static const TargetResult result = result_of(eserol2019::table_5_15_model_parallel());
  return result;
}

const TargetRow& find(const TargetResult& result, const std::string& row) {
  for (const TargetRow& candidate : result.rows)
    if (candidate.row == row) return candidate;
  FAIL("no row " << row);
  return result.rows.front();
}

}  // namespace

TEST_CASE("Eserol 2019, Table 5.15, model parallelism: 36 cells predicted from one worker's and one rate") {
  const TargetSummary& summary = model_parallel().summary;
  CHECK(summary.fitted == 6);
  CHECK(summary.predicted == 36);
  REQUIRE(summary.mape);
  REQUIRE(summary.bound);
  CHECK(*summary.bound <= 8);
  CHECK(*summary.mape <= *summary.bound);
  for (const TargetRow& row : model_parallel().rows) CHECK(row.note.empty());  // steady states found
}

TEST_CASE("Eserol 2019: four workers, model parallelism is faster up to batch 64, data parallelism from 128 on") {
  // Asynchronous data parallelism, the faster kind: simulated with one server, and published with one and with four.
  const TargetResult data_parallel = result_of(eserol2019::table_5_15_data_parallel());
  const auto check = [&](const std::string& method, const std::string& batch, bool faster, auto value) {
    const std::string cell = "N=4 BS=" + batch + " ";
    INFO(cell << method);
    const double hypergraph = find(model_parallel(), cell + "Coarse-grain Hypergraph MP").simulated;
    CHECK((hypergraph < value(find(data_parallel, cell + method))) == faster);
  };
  for (const auto& [batch, faster] :
       {std::pair("16", true), {"32", true}, {"64", true}, {"128", false}, {"256", false}, {"512", false}}) {
    check("Async DP (1 PS)", batch, faster, [](const TargetRow& row) { return row.simulated; });
    for (const char* method : {"Async DP (1 PS)", "Async DP (distributed PS)"})
      check(method, batch, faster, [](const TargetRow& row) { return row.published.value(); });
  }
}

TEST_CASE("Eserol 2019, section 5.3: hours to an accuracy follow from one worker's") {
  const TargetResult result = result_of(eserol2019::time_to_accuracy());
  CHECK(result.summary.met());
  CHECK(result.summary.predicted == 3);  // at three batch sizes, as the thesis does not say which
}

TEST_CASE("GPipe's bubble formula, all numbers of stages and micro-batches") {
  const TargetResult result = result_of(gpipe::bubble());
  CHECK(result.summary.exact == 2 * 3 * 7);
  CHECK(result.summary.exact_matched == result.summary.exact);
}

}  // namespace epocast::reproduce_model_parallel_test
