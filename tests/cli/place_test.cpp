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

TEST_CASE("a placement that parts what the graph keeps together is refused") {
  const TemporaryFolder folder;
  folder.write(
      "graph.csv",
      "node,time_s,output_bytes,lifetime,with,inputs\nw,0,400,residual,,\nu,0.1,0,reference,w,w:0\nv,0.1,10,,,\n");
  folder.write("apart.csv", "node,device\nw,0\nu,1\nv,0\n");
  folder.write("together.csv", "node,device\nw,1\nu,1\nv,0\n");
  run_good({"place", "graph.csv", "--devices", "2", "--import", "together.csv"}, folder);
  const ProgramRun run = run_program({"place", "graph.csv", "--devices", "2", "--import", "apart.csv"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::Contains("apart.csv: node 'u' is on device 1, but the graph has it with 'w'"));
}

TEST_CASE("a placement that fits is not given up for a slower one") {
  const TemporaryFolder folder;
  folder.write(
      "graph.csv",
      "node,time_s,output_bytes,lifetime,inputs\nn0,1,100,residual,\nn1,3,50,normal,n0:0\nn2,3,50,normal,n0:100\n"
      "n3,0,200,normal,\nn4,5,100,normal,n3:200\nn5,2,200,residual,n2:0 n3:200 n4:100\n");
  const auto json = nlohmann::json::parse(
      run_good({"place", "graph.csv", "--devices", "2", "--latency", "0.1s", "--bandwidth", "100B/s", "--reserve", "0",
                "--memory", "500B", "--method", "pardnn", "--format", "json"},
               folder)
          .out);
  const auto& stages = json.at("methods").at(0).at("stages");
  double least = std::numeric_limits<double>::infinity();
  for (const auto& stage : stages)
    if (stage.at("fits_memory") == true) least = std::min(least, stage.at("makespan_s").get<double>());
  CHECK(stages.back().at("fits_memory") == true);
  CHECK(stages.back().at("makespan_s").get<double>() == Approx(least));
}

}  // namespace epocast::place_test
