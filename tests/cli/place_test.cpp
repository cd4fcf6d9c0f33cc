// `epocast place`: what it recommends, and its pictures.

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::place_test {

using namespace epocast::test;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("what is faster than the recommended placement is named") {
  const TemporaryFolder folder;
  for (const char* model : {"lenet", "vgg16"}) {
    std::vector<std::string> command{"place",          model,      "--batch",      "32", "--devices", "2",
                                     "--alternatives", "--method", "pardnn,single"};
    const std::string table = run_good(command, folder).out;
    command.insert(command.end(), {"--format", "json"});
    const auto json = nlohmann::json::parse(run_good(command, folder).out);
    double placed = std::numeric_limits<double>::infinity(), other = placed;
    for (const auto& method : json.at("methods")) {
      const auto& stage = method.at("stages").back();
      if (stage.at("fits_memory") == true) placed = std::min(placed, stage.at("makespan_s").get<double>());
    }
    for (const auto& alternative : json.at("alternatives"))
      if (alternative.at("fits_memory") == true) other = std::min(other, alternative.at("makespan_s").get<double>());
    CAPTURE(model, placed, other, table);
    CHECK(table.find("  recommended placement: ") != std::string::npos);
    CHECK((table.find("  faster than any placement that fits: ") != std::string::npos) == (other < placed));
  }
}

TEST_CASE("pictures of a placement have linear axes with titles, and memory changes in steps") {
  const TemporaryFolder folder;
  run_good({"place", "lenet", "--devices", "2", "--method", "pardnn", "--plot-memory", "memory.svg", "--plot-profile",
            "profile.svg"},
           folder);
  const std::string memory = read_file(folder.path() / "memory.svg");
  CHECK(count(memory, " L") == 1);   // the limit alone is a straight line
  CHECK(count(memory, ">0<") == 2);  // both axes begin at zero, which no logarithmic one does
  const std::string profile = read_file(folder.path() / "profile.svg");
  CHECK(profile.find(">devices, and transfers to computation<") != std::string::npos);
}

}  // namespace epocast::place_test
