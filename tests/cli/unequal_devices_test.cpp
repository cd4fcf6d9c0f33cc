// Platforms with devices of several kinds, as users see them.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::unequal_devices_test {

using namespace epocast::test;
using nlohmann::ordered_json;

namespace {

/// Two hosts, one ten times as fast as the other in everything.
const std::string kPlatform = R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="pair" routing="Full">
    <host id="fast" speed="10Tf">
      <prop id="epocast.device_model" value="fast one"/><prop id="epocast.memory" value="40 GB"/>
      <prop id="epocast.memory_bandwidth" value="1000 GB/s"/>
    </host>
    <host id="slow" speed="1Tf">
      <prop id="epocast.device_model" value="slow one"/><prop id="epocast.memory" value="4 GB"/>
      <prop id="epocast.memory_bandwidth" value="100 GB/s"/>
    </host>
    <link id="between" bandwidth="1GBps" latency="10us" sharing_policy="SPLITDUPLEX"/>
    <route src="fast" dst="slow"><link_ctn id="between" direction="UP"/></route>
  </zone>
</platform>
)";
const std::string kStudy =
    "study: pair\nplatform: pair.xml\nmodel: vgg16\nbatch: {per_worker: 8}\nstrategy: data_parallel\n"
    "compute: {cost_model: roofline, overhead: 0 s}\n";

ordered_json row(const TemporaryFolder& folder, const std::vector<std::string>& settings) {
  std::vector<std::string> arguments{"run", "study.yaml", "--format", "json"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  const ProgramRun run = run_program(arguments, folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return ordered_json::parse(run.out).front();
}

std::string table(const TemporaryFolder& folder, const std::vector<std::string>& settings) {
  std::vector<std::string> arguments{"run", "study.yaml"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  const ProgramRun run = run_program(arguments, folder.path());
  REQUIRE(run.exit_code == 0);
  return run.out + run.err;
}

}  // namespace

TEST_CASE("each device takes its own time, in whatever order the hosts are named") {
  const TemporaryFolder folder;
  folder.write("pair.xml", kPlatform);
  folder.write("study.yaml", kStudy);
  const ordered_json one = row(folder, {"workers={hosts: [fast, slow]}"});
  const ordered_json other = row(folder, {"workers={hosts: [slow, fast]}"});
  for (const auto& [column, value] : one.items())
    if (value.is_number()) {
      INFO(column);
      CHECK(value.get<double>() == Approx(other.at(column).get<double>()).epsilon(1e-9));
    }
  // The slow one alone computes for so long; the fast one for a tenth. Speedup is against the fast one alone with the
  // batch of both; there is no single device that efficiency could be relative to.
  const ordered_json slow = row(folder, {"workers={hosts: [slow]}"}), fast = row(folder, {"workers={hosts: [fast]}"});
  // The slow one sets the pace; the last all-reduce hides behind its updates.
  CHECK(one.at("iteration_s").get<double>() == Approx(slow.at("iteration_s").get<double>()).epsilon(1e-9));
  CHECK(one.at("compute_s").get<double>() == Approx(0.55 * slow.at("compute_s").get<double>()).epsilon(1e-9));
  const ordered_json both = row(folder, {"workers={hosts: [fast]}", "batch.per_worker=16"});
  CHECK(one.at("speedup").get<double>() ==
        Approx(both.at("iteration_s").get<double>() / one.at("iteration_s").get<double>()).epsilon(1e-9));
  CHECK(one.at("efficiency").is_null());
  CHECK_FALSE(slow.at("efficiency").is_null());
}

TEST_CASE("a share of memory in reserve is of each device's own") {
  const TemporaryFolder folder;
  folder.write("pair.xml", kPlatform);
  folder.write("study.yaml", kStudy);
  // A worker needs less than 2 GB. A tenth of the slow one's 4 GB leaves enough of it, a tenth of the other's 40 not.
  const std::string both = "workers={hosts: [fast, slow]}";
  const ordered_json fits = row(folder, {both, "memory.reserve_share=0.1"});
  CHECK(fits.at("fits_memory") == true);
  CHECK(fits.at("peak_memory_bytes").get<double>() > 4e9);  // the fast one's, with its reserve
  CHECK(row(folder, {both, "memory.reserve_share=0.7"}).at("fits_memory") == false);
}

TEST_CASE("a step time holds for the device it was measured on, and others come with a warning") {
  const TemporaryFolder folder;
  folder.write("pair.xml", kPlatform);
  folder.write("study.yaml", kStudy);
  const std::string anchor = "compute.step_time={batch: 8, time: 1 s}", slow = "compute.device=slow";
  const std::string one = "workers={hosts: [fast, slow]}", other = "workers={hosts: [slow, fast]}";
  // Measured on the slow one, the fast one takes 0.1 s; measured on the fast one, the slow one takes 10 s.
  CHECK(row(folder, {one, anchor, slow}).at("compute_s").get<double>() == Approx(0.55).epsilon(1e-9));
  CHECK(row(folder, {other, anchor, slow}).at("compute_s").get<double>() == Approx(0.55).epsilon(1e-9));
  CHECK(row(folder, {other, anchor}).at("compute_s").get<double>() == Approx(0.55).epsilon(1e-9));
  CHECK(row(folder, {one, anchor}).at("compute_s").get<double>() == Approx(5.5).epsilon(1e-9));
  CHECK(table(folder, {one, anchor, slow}).find("step_time is taken for one of slow one; times on fast one follow") !=
        std::string::npos);
  CHECK(table(folder, {"workers={hosts: [slow]}", anchor, slow}).find("step_time is taken for") == std::string::npos);

  // Timings and calibrations likewise; those of no device here stand for the first.
  const std::string scaled = "by nominal rates, not measured";
  CHECK(table(folder, {one, "compute={cost_model: fitted, calibration: v100}"}).find(scaled) != std::string::npos);
  CHECK(table(folder, {"workers={hosts: [slow]}", "compute={cost_model: fitted, calibration: v100}"}).find(scaled) ==
        std::string::npos);
}

}  // namespace epocast::unequal_devices_test
