// What `speedup` and `efficiency` are relative to: one device with the whole global batch, and one device with its
// share.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::efficiency_test {

using namespace epocast::test;
using nlohmann::ordered_json;

namespace {

ordered_json rows_of(const std::string& study) {
  const TemporaryFolder folder;
  folder.write("study.yaml", study);
  return ordered_json::parse(run_good({"run", "study.yaml", "--format", "json"}, folder).out);
}

double number(const ordered_json& row, const char* column) { return row.at(column).get<double>(); }

double per_device(const ordered_json& row) { return number(row, "samples_per_s") / number(row, "workers"); }

}  // namespace

TEST_CASE("samples/s that grow exactly with the devices have the same efficiency") {
  // A step of 10 s hides the all-reduces of any number of workers, so that samples/s grow exactly 8- to 256-fold.
  const ordered_json rows = rows_of(
      "study: a\nplatform: ideal_star_8192\nmodel: vgg16\nbatch: {per_worker: 32}\nstrategy: data_parallel\n"
      "collective: {algorithm: ring}\ncompute: {step_time: {batch: 32, time: 10 s}}\nsweep: {workers: [1, 8, 64, "
      "256]}\n");
  REQUIRE(rows.size() == 4);
  for (const ordered_json& row : rows) {
    REQUIRE(per_device(row) == Approx(per_device(rows[0])).epsilon(1e-9));
    CHECK(number(row, "efficiency") == Approx(1).epsilon(1e-9));
  }
}

TEST_CASE("efficiency is samples/s per device over those of one device with the same batch per device") {
  const ordered_json rows = rows_of(
      "study: a\nplatform: ideal_star_8192\nmodel: mlp_mnist\nbatch: {per_worker: 32}\ndataset: {samples: 60000}\n"
      "collective: {algorithm: ring}\nstrategy: {name: data_parallel, overlap: false}\nsweep: {workers: [1, 8, 64, "
      "256]}\n");
  REQUIRE(rows.size() == 4);
  for (const ordered_json& row : rows)
    CHECK(number(row, "efficiency") == Approx(per_device(row) / per_device(rows[0])).epsilon(1e-9));
  CHECK(number(rows[1], "efficiency") < 0.9);  // all communication is exposed
}

TEST_CASE("efficiency of a pipeline is relative to one device with its share of the batch") {
  const std::string study = "study: a\nplatform: p100_cluster\nmodel: vgg16\n";
  const ordered_json together =
      rows_of(study + "workers: 4\nbatch: {global: 128}\nstrategy: {name: pipeline, micro_batches: 8}\n");
  const ordered_json alone = rows_of(study + "workers: 1\nbatch: {global: 32}\nstrategy: single\n");
  CHECK(number(together[0], "efficiency") == Approx(per_device(together[0]) / per_device(alone[0])).epsilon(1e-9));
}

TEST_CASE("there is no efficiency where one device has no share of the batch") {
  const ordered_json rows = rows_of(
      "study: a\nplatform: p100_cluster\nmodel: vgg16\nworkers: 4\nbatch: {global: 6}\n"
      "strategy: {name: pipeline, micro_batches: 2}\n");
  CHECK(rows[0].at("efficiency").is_null());
  CHECK(number(rows[0], "speedup") > 0);
}

TEST_CASE("there is no efficiency where the devices differ") {
  const TemporaryFolder folder;
  std::string clusters;
  for (const auto& [prefix, speed] : {std::pair("a", "1Tf"), std::pair("b", "2Tf")})
    clusters += std::string("<cluster id=\"c_") + prefix + "\" prefix=\"" + prefix +
                "\" suffix=\"\" radical=\"0-1\" speed=\"" + speed + "\" bw=\"1GBps\" lat=\"1us\"/>\n";
  folder.write("p.xml",
               "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
               "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n"
               "<prop id=\"epocast.device_model\" value=\"a CPU\"/><prop id=\"epocast.memory\" value=\"16 GB\"/>"
               "<prop id=\"epocast.memory_bandwidth\" value=\"100 GB/s\"/>\n" +
                   clusters +
                   "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
                   "<zoneRoute src=\"c_a\" dst=\"c_b\" gw_src=\"ac_a_router\" gw_dst=\"bc_b_router\">"
                   "<link_ctn id=\"l\"/></zoneRoute>\n</zone>\n</platform>\n");
  folder.write("study.yaml", "study: a\nplatform: p.xml\nmodel: mlp_mnist\nsweep: {workers: [2, 4]}\n");
  const ordered_json rows = ordered_json::parse(run_good({"run", "study.yaml", "--format", "json"}, folder).out);
  CHECK(rows[0].at("efficiency").is_number());  // both of the first kind
  CHECK(rows[1].at("efficiency").is_null());
}

TEST_CASE("a schedule's efficiency is that of all its phases") {
  // Phases of one epoch each: the devices' time alone over their time together.
  const std::string study =
      "study: a\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\ndataset: {samples: 6400}\ncollective: "
      "{algorithm: ring}\n"
      "strategy: {name: data_parallel, overlap: false}\n";
  const ordered_json both = rows_of(
      study + "schedule: [{epochs: 1, batch.global: 64, workers: 2}, {epochs: 1, batch.global: 256, workers: 8}]\n");
  double alone = 0, together = 0;
  for (const auto& [workers, batch] : {std::pair(2, 64), std::pair(8, 256)}) {
    const ordered_json row = rows_of(study + "workers: " + std::to_string(workers) +
                                     "\nbatch: {global: " + std::to_string(batch) + "}\n")[0];
    const double device_seconds = workers * (6400.0 / batch) * number(row, "iteration_s");
    alone += device_seconds * number(row, "efficiency");
    together += device_seconds;
  }
  CHECK(number(both[0], "efficiency") == Approx(alone / together).epsilon(1e-9));
}

TEST_CASE("the single device recomputes if the study does") {
  const ordered_json rows = rows_of(
      "study: a\nplatform: skylake_10gbe\nmodel: vgg16\nworkers: 1\nbatch: {per_worker: 8}\nstrategy: single\n"
      "sweep: {memory.recompute: [none, sqrt]}\n");
  REQUIRE(number(rows[1], "iteration_s") > 1.1 * number(rows[0], "iteration_s"));
  for (const ordered_json& row : rows) {
    CHECK(number(row, "speedup") == Approx(1).epsilon(1e-9));
    CHECK(number(row, "efficiency") == Approx(1).epsilon(1e-9));
  }
}

}  // namespace epocast::efficiency_test
