// The targets of Eserol 2019 against the numbers in the thesis and against values derived from its formulas.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "experiments/reproduce/report.hpp"

namespace epocast::reproduce_eserol2019_test {

namespace {

TargetResult result_of(const Target& target) {
  const Registries registries = builtin_registries();
  return reproduce(target, {registries, available_processors()});
}

/// Each target takes seconds: run once for all tests.
const TargetResult& table_5_14() {
  static const TargetResult result = result_of(eserol2019::table_5_14());
  return result;
}
const TargetResult& table_5_15() {
  static const TargetResult result = result_of(eserol2019::table_5_15_data_parallel());
  return result;
}

const TargetRow& find(const TargetResult& result, const std::string& row, const std::string& quantity) {
  for (const TargetRow& candidate : result.rows)
    if (candidate.row == row && candidate.quantity == quantity) return candidate;
  FAIL("no row " << row << ": " << quantity);
  return result.rows.front();
}

}  // namespace

TEST_CASE("Eserol 2019, Table 5.14: all 28 printed cells come out") {
  // Data parallelism: 2(N-1) x 138,357,544 x 4 B x 64000/BS / 2^30. Hypergraph: volume x 2 x (64000/32) / 1024. The
  // thesis truncates, so nothing but equality will do.
  struct Cell {
    int workers, batch;
    double data_parallel, hypergraph, reduction;
  };
  const std::vector<Cell> cells{{2, 16, 4123, 107, 97},   {2, 32, 2061, 107, 94},   {2, 64, 1030, 107, 89},
                                {4, 16, 12370, 239, 98},  {4, 32, 6185, 239, 96},   {4, 64, 3092, 239, 92},
                                {8, 16, 28863, 1167, 95}, {8, 32, 14431, 1167, 91}, {8, 64, 7215, 1167, 83}};
  for (const Cell& cell : cells) {
    const std::string row = "N=" + std::to_string(cell.workers) + " BS=" + std::to_string(cell.batch);
    INFO(row);
    for (const auto& [quantity, printed] :
         {std::pair("data parallelism", cell.data_parallel), std::pair("hypergraph partitioning", cell.hypergraph),
          std::pair("reduction", cell.reduction)}) {
      CHECK(find(table_5_14(), row, quantity).published == printed);
      CHECK(find(table_5_14(), row, quantity).simulated == printed);
    }
    // What was simulated before truncation is the formula to rounding.
    const double gib = 2.0 * (cell.workers - 1) * 138'357'544 * 4 * (64000.0 / cell.batch) / 1073741824;
    CHECK(find(table_5_14(), row, "data parallelism, fp32").simulated == Approx(gib).epsilon(1e-9));
  }
  CHECK(find(table_5_14(), "average", "reduction").published == 93);
  CHECK(find(table_5_14(), "average", "reduction").simulated == 93);

  // The 1167 GB of N=8, printed three times, helped to find the volume of Table 5.10: input, not result.
  CHECK(table_5_14().summary.exact == 25);
  CHECK(table_5_14().summary.exact_matched == 25);
  CHECK(table_5_14().summary.inputs == 3 + 3);
  CHECK(table_5_14().summary.met());
}

TEST_CASE("Eserol 2019, Table 5.10: the volumes in use have the printed digits") {
  // Volumes are printed truncated to whole MB, averages (volume / N) to one digit after the point.
  const PublishedTable table = PublishedTable::load(
      std::filesystem::path(EPOCAST_SOURCE_DIR) / "experiments/reproduce/eserol2019/table_5_10_used.csv", {"workers"});
  for (const int workers : {2, 4, 8}) {
    const std::vector<std::string> key{std::to_string(workers)};
    const double used = table.value(key, "volume used");
    CHECK(std::floor(used) == table.value(key, "volume"));
    CHECK(std::floor(10 * used / workers) == std::round(10 * table.value(key, "average volume")));
  }
}

TEST_CASE("Eserol 2019, Table 5.14 corrected: the hypergraph's activations take 4 bytes like the gradients") {
  // 27.5625, 61.25 and 298.8 Mi values x 2 x 2000 iterations x 4 B; half a unit of the last digit given.
  const std::map<std::string, double> gib{{"N=2", 430.66}, {"N=4", 957.03}, {"N=8", 4668.75}};
  const std::map<std::string, double> reduction{
      {"N=2 BS=16", 89.56}, {"N=2 BS=32", 79.11}, {"N=2 BS=64", 58.22}, {"N=4 BS=16", 92.26}, {"N=4 BS=32", 84.53},
      {"N=4 BS=64", 69.05}, {"N=8 BS=16", 83.82}, {"N=8 BS=32", 67.65}, {"N=8 BS=64", 35.30}, {"average", 73.28}};
  for (const auto& [row, percent] : reduction) {
    INFO(row);
    const TargetRow& corrected = find(table_5_14(), row, "reduction, both fp32");
    CHECK(std::abs(corrected.simulated - percent) <= 0.005);
    CHECK_FALSE(corrected.published);
    if (row != "average")
      CHECK(std::abs(find(table_5_14(), row, "hypergraph partitioning, fp32").simulated - gib.at(row.substr(0, 3))) <=
            0.005);
  }
}

TEST_CASE("Eserol 2019, Table 5.15: times of one and two workers go in, those of four are predicted") {
  std::set<std::pair<std::string, std::string>> cells;
  std::map<std::string, int> roles;
  for (const TargetRow& row : table_5_15().rows) {
    INFO(row.row);
    CHECK(cells.emplace(row.row, row.quantity).second);  // no cell twice, hence none in two roles
    if (!row.published || row.role == Role::stated) continue;
    CHECK(row.note.empty());  // steady state found
    const std::string workers = row.row.substr(0, row.row.find(' '));
    CHECK((workers == "N=4") == (row.role == Role::predicted));
    CHECK((workers != "N=4") == row.fitted);
    if (workers != "N=4") CHECK(row.role == Role::input);
    ++roles[workers];
  }
  // 6 batch sizes; on several workers 4 ways.
  CHECK(roles == std::map<std::string, int>{{"N=1", 6}, {"N=2", 24}, {"N=4", 24}});
  CHECK(find(table_5_15(), "N=4 BS=16 Sync DP (1 PS)", "run time of 10 epochs").published == 6657);
}

TEST_CASE("Eserol 2019, Table 5.15: four workers within 6 % on average") {
  const TargetSummary& summary = table_5_15().summary;
  CHECK(summary.bound == 6.0);
  REQUIRE(summary.mape);
  CHECK(*summary.mape <= 6);
  CHECK(*summary.mape < *summary.seen.trivial_mape);
  CHECK(table_5_15().as_declared());
  REQUIRE(summary.fitted_mape);
  CHECK(*summary.fitted_mape < 5);
}

TEST_CASE("Eserol 2019, Table 5.15: the four ways rank as published where they differ by more than 3 %") {
  // All pairs in a column of the table. In one of 52 the simulation disagrees, and the table does with itself: at batch
  // size 512, distributing the server makes synchronous training 5 % slower on two workers and 5 % faster on four.
  int pairs = 0;
  std::set<std::string> against;
  for (const TargetRow& a : table_5_15().rows)
    for (const TargetRow& b : table_5_15().rows) {
      if (!a.published || !b.published || a.row.starts_with("N=1") || a.role == Role::stated) continue;
      const std::size_t method = a.row.find(' ', a.row.find("BS="));
      if (a.row.substr(0, method + 1) != b.row.substr(0, method + 1) || *a.published <= 1.03 * *b.published) continue;
      ++pairs;
      if (a.simulated <= b.simulated) against.insert(a.row + " > " + b.row);
    }
  CHECK(pairs == 52);
  CHECK(against == std::set<std::string>{"N=4 BS=512 Sync DP (1 PS) > N=4 BS=512 Sync DP (distributed PS)"});
  for (const TargetRow& row : table_5_15().rows)
    if (row.unit == "pairs") {
      CHECK(row.published == 52);  // the table's own order
      CHECK(row.simulated == 51);
      CHECK(row.role == Role::stated);
    }
  REQUIRE(table_5_15().misses.size() == 1);  // it is judged, and known to be missed
  CHECK(table_5_15().misses.front().text.find("51 instead of 52 pairs") != std::string::npos);
}

TEST_CASE("Eserol 2019, Table 5.15: the fitted constants are those of a framework, not of the network") {
  // Copies well below the memory's and the network's rates, and a few of 56 cores: what gRPC and its threads take.
  const auto constant = [](const char* name) { return find(table_5_15(), "fitted to N=2", name).simulated; };
  CHECK((constant("copy_rate") > 0.3e9 && constant("copy_rate") < 3e9));
  CHECK((constant("server_rate") > 1e9 && constant("server_rate") < 10e9));
  CHECK((constant("communication_cores") > 1 && constant("communication_cores") < 12));
}

TEST_CASE("Eserol 2019, Table 5.15: one asynchronous cell by hand from the fitted constants") {
  // N=4, 1 PS, batch 512: one worker's step, from the line through the N=1 row, less its update (which the server
  // does), slowed by 56 / (56 - communication_cores); then it waits for S = 553,430,176 B to be copied out and in
  // again, each way by itself at copy_rate, and to be given out and taken in by the server at server_rate. Copies and
  // service of different layers overlap, all but the largest layer's; so between one and both of them.
  const auto constant = [](const char* name) { return find(table_5_15(), "fitted to N=2", name).simulated; };
  const double bytes = 553'430'176;
  const double alone = find(table_5_15(), "N=1 BS=512 Single Processor", "run time of 10 epochs").simulated;
  const double step = alone * 512 / 102400 * 56 / (56 - constant("communication_cores"));
  const double copies = 2 * bytes / constant("copy_rate"), service = 2 * bytes / constant("server_rate");
  const double simulated = find(table_5_15(), "N=4 BS=512 Async DP (1 PS)", "run time of 10 epochs").simulated;
  const double iterations = 102400.0 / (512 * 4);
  CHECK(simulated > 0.98 * iterations * (step + copies));
  CHECK(simulated < 1.02 * iterations * (step + copies + service));
}

}  // namespace epocast::reproduce_eserol2019_test
