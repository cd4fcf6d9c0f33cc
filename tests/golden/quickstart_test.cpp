// The quickstart study's CSV is what it was when somebody last looked at it and approved.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "experiments/output.hpp"
#include "experiments/run_study.hpp"
#include "tests/cli/text.hpp"

namespace epocast::quickstart_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;
const std::filesystem::path kGolden = kRoot / "tests/golden/vgg16_skylake.csv";
constexpr double kTolerance = 1e-9;  // relative: rounding differs between compilers, forecasts may not

std::string simulate() {
  const Study study = load_users_study(kRoot / "experiments/studies/vgg16_skylake.yaml");
  std::ostringstream out;
  write_results(out, run_study(study.scenarios, builtin_registries(), {}, 1, {}), OutputFormat::csv);
  return out.str();
}

/// The table without the comments above it.
std::string without_comments(const std::string& text) {
  std::string out;
  for (const std::string& line : test::split(text, '\n'))
    if (!line.starts_with('#')) out += line + '\n';
  return out;
}

std::string version() {
  std::string text(64, '\0');
  FILE* const program = popen(EPOCAST_BINARY " --version", "r");
  if (program == nullptr || std::fgets(text.data(), static_cast<int>(text.size()), program) == nullptr)
    text = "unknown\n";
  if (program != nullptr) pclose(program);
  return text.c_str();
}

void approve(const std::string& csv) {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::ofstream(kGolden)
      << "# What `epocast run --format csv` gives for the quickstart study; no published numbers.\n"
         "# inputs: experiments/studies/vgg16_skylake.yaml, platforms/skylake_10gbe.xml,\n"
         "#   workloads/models/vgg16.yaml, costmodels/timings/skylake_tf1_vgg16.csv\n"
         "# tolerance: 1e-9 relative for numbers (below 1e-12: absolute), none for text\n"
         "# version: "
      << version() << "# date: " << date
      << "\n# After a change that is meant to change these numbers, say why in the commit and approve them by\n"
         "#   EPOCAST_APPROVE=1 ctest --preset dev -R '^golden$'\n"
      << csv;
}

bool is_number(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

}  // namespace

TEST_CASE("the quickstart forecast is the approved one") {
  const std::string csv = simulate();
  if (const char* wanted = std::getenv("EPOCAST_APPROVE"); wanted != nullptr && std::string(wanted) == "1") {
    approve(csv);
    WARN("approved: rewrote " << kGolden.filename());
  }
  const std::vector<std::string> is = test::split(csv, '\n');
  const std::vector<std::string> was = test::split(without_comments(test::read_file(kGolden)), '\n');
  REQUIRE(is.size() == was.size());
  REQUIRE(is.front() == was.front());
  const std::vector<std::string> columns = test::csv_fields(is.front());
  for (std::size_t l = 1; l < is.size(); ++l) {
    const std::vector<std::string> now = test::csv_fields(is[l]), then = test::csv_fields(was[l]);
    REQUIRE(now.size() == columns.size());
    REQUIRE(then.size() == columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      CAPTURE(now[1], columns[c], now[c], then[c]);
      double a = 0, b = 0;
      if (is_number(now[c], a) && is_number(then[c], b))
        CHECK(std::abs(a - b) <= std::max(kTolerance * std::abs(b), 1e-12));
      else
        CHECK(now[c] == then[c]);
    }
  }
}

}  // namespace epocast::quickstart_test
