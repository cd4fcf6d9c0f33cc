// Pairwise, injection and bisection bandwidth of every platform that ships, as its flows draw it, against the figure of
// the source: platforms.csv.
//
// All flows of a row start together, each with V bytes, and flow i ends at t_i; the row's bandwidth is the sum of V /
// t_i. That is the sum of the flows' rates where flows that share a link have equal rates, as in all rows by symmetry.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "sim/simgrid/engine.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::platform_bandwidth_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

struct Row {
  std::string platform, quantity, flows;
  double bandwidth = 0;      // [GB/s]
  double tolerance_pct = 0;  // 0 where the platform file has the figure of the source: exact up to rounding
  std::string source;
};

std::vector<std::string> split(const std::string& text, char separator, std::size_t most = std::string::npos) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (out.size() + 1 < most) {
    const std::size_t end = text.find(separator, begin);
    if (end == std::string::npos) break;
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  out.push_back(text.substr(begin));
  return out;
}

std::vector<Row> read_rows() {
  std::ifstream in(kRoot / "tests/published/platforms.csv");
  std::vector<Row> rows;
  std::string line;
  std::getline(in, line);
  REQUIRE(line == "platform,quantity,flows,gbytes_per_s,tolerance_pct,source");
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = split(line, ',', 6);
    CAPTURE(line);
    REQUIRE(fields.size() == 6);
    rows.push_back({fields[0], fields[1], fields[2], std::stod(fields[3]), std::stod(fields[4]), fields[5]});
  }
  return rows;
}

/// "gpu-1-0..3" is gpu-1-0, gpu-1-1, gpu-1-2, gpu-1-3.
std::vector<std::string> expand(const std::string& hosts) {
  const std::size_t dots = hosts.find("..");
  if (dots == std::string::npos) return {hosts};
  const std::size_t digits = hosts.rfind('-', dots) + 1;
  std::vector<std::string> out;
  const int last = std::stoi(hosts.substr(dots + 2));
  for (int i = std::stoi(hosts.substr(digits, dots - digits)); i <= last; ++i)
    out.push_back(hosts.substr(0, digits) + std::to_string(i));
  return out;
}

/// "a>b" is a flow; ranges on both sides go pair by pair, a range on one side goes with the same host each time.
std::vector<std::pair<std::string, std::string>> expand_flows(const std::string& flows) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& term : split(flows, ' ')) {
    const std::vector<std::string> ends = split(term, '>');
    const std::vector<std::string> from = expand(ends.at(0)), to = expand(ends.at(1));
    if (from.size() != to.size() && from.size() != 1 && to.size() != 1)
      throw std::runtime_error("ranges of unequal length in " + term);
    for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i)
      out.emplace_back(from[from.size() == 1 ? 0 : i], to[to.size() == 1 ? 0 : i]);
  }
  return out;
}

struct SumOfRates : SimEngine::Listener {
  explicit SumOfRates(SimEngine& the_engine) : engine(the_engine) {}
  void on_timer(std::uint64_t) override {}
  void on_flow_done(std::uint64_t) override { rate += kBytes / engine.now(); }

  static constexpr double kBytes = 1e9;
  SimEngine& engine;
  double rate = 0;  // [B/s]
};

/// [GB/s]; once in a process.
double simulate(const Row& row) {
  SimEngine engine((kRoot / "platforms" / (row.platform + ".xml")).string());
  SumOfRates sum(engine);
  engine.set_listener(sum);
  for (const auto& [from, to] : expand_flows(row.flows)) {
    const int src = engine.find_host(from), dst = engine.find_host(to);
    if (src < 0 || dst < 0) throw std::runtime_error(row.platform + " has no hosts " + from + ", " + to);
    engine.start_flow(src, dst, SumOfRates::kBytes, 0);
  }
  engine.run();
  return sum.rate / 1e9;
}

}  // namespace

TEST_CASE("platforms have the bandwidth of their sources") {
  const std::vector<Row> rows = read_rows();
  REQUIRE(rows.size() > 50);
  const std::vector<std::string> simulated =
      testing::in_children(static_cast<int>(rows.size()), [&](int i) { return std::to_string(simulate(rows[i])); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double bandwidth = std::stod(simulated[i]);
    const double error_pct = 100 * (bandwidth / rows[i].bandwidth - 1);
    CAPTURE(rows[i].platform, rows[i].quantity, rows[i].flows, rows[i].source, bandwidth, rows[i].bandwidth, error_pct);
    CHECK(std::abs(error_pct) <= std::max(rows[i].tolerance_pct, 1e-4));  // six digits
  }
}

TEST_CASE("every platform of a real machine is compared with its sources") {
  std::set<std::string> compared;
  for (const Row& row : read_rows()) compared.insert(row.platform);
  for (const PlatformInfo& platform : list_platforms(kRoot / "platforms"))
    if (platform.device_model != "synthetic") {
      CAPTURE(platform.name);
      CHECK(compared.contains(platform.name));
    }
}

}  // namespace epocast::platform_bandwidth_test
