// Operator graphs and placements in files.
#include <catch2/catch.hpp>
#include <sstream>

#include "experiments/place/place_job.hpp"
#include "tests/support/error_message.hpp"

using namespace epocast;

namespace {

constexpr const char* kHead = "node,time_s,output_bytes,inputs\n";
constexpr const char* kGraph =
    "node,time_s,output_bytes,lifetime,with,inputs\n"
    "\"sum, all\",2,1,normal,,left:3 right:8\n"
    "right,0.5,8,normal,,\n"
    "left,1,3,residual,right,\n";

}  // namespace

TEST_CASE("a graph from CSV is put in order") {
  const NamedGraph named = read_graph_csv(kGraph, "g.csv");
  CHECK(named.nodes == std::vector<std::string>{"right", "left", "sum, all"});
  const PlacementGraph& graph = named.graph;
  CHECK(graph.time[2] == to_ticks(2));
  CHECK(graph.lifetime[1] == Lifetime::residual);
  CHECK(graph.group == std::vector<std::int32_t>{0, 0, -1});
  REQUIRE(graph.edges() == 2);
  CHECK(graph.bytes[0] == 8);
  CHECK(graph.to[1] == 2);

  std::ostringstream out;
  write_placement(out, named, {1, 1, 0});
  CHECK(out.str() == "node,device\nright,1\nleft,1\n\"sum, all\",0\n");
  CHECK(read_placement(out.str(), "p.csv", named, 2) == Placement{1, 1, 0});
}

TEST_CASE("the same graph from JSON") {
  const NamedGraph named = read_graph_json(
      R"({"comment": "ours", "nodes": [
        {"node": "sum, all", "time_s": 2, "output_bytes": 1},
        {"node": "right", "time_s": 0.5, "output_bytes": 8, "lifetime": "normal"},
        {"node": "left", "time_s": 1, "output_bytes": 3, "lifetime": "residual", "with": "right"}],
      "edges": [["left", "sum, all", 3], ["right", "sum, all", 8]]})",
      "g.json");
  const NamedGraph csv = read_graph_csv(kGraph, "g.csv");
  CHECK(named.nodes == csv.nodes);
  CHECK(named.graph.time == csv.graph.time);
  CHECK(named.graph.memory == csv.graph.memory);
  CHECK(named.graph.group == csv.graph.group);
  CHECK(named.graph.to == csv.graph.to);
}

TEST_CASE("what is wrong with a graph has its line") {
  const auto csv = [](const std::string& rows) {
    return testing::message([&] { read_graph_csv(kHead + rows, "g.csv"); });
  };
  CHECK(csv("a,1,1,\na,1,1,\n") == "g.csv:3: node: there is a node 'a' already, in line 2; names must differ");
  CHECK(csv("alpha,1,1,alhpa:1\n") == "g.csv:2: edge: there is no node 'alhpa' (did you mean 'alpha'?)");
  CHECK(csv("a,1,1,b\nb,1,1,\n") ==
        "g.csv:2: inputs: 'b' is not NODE:BYTES; write the bytes that are read, 0 for control only");
  CHECK(csv("a,1,1,c:1\nb,1,1,a:1\nc,1,1,b:1\nd,1,1,c:1\n") ==
        "g.csv:2: node: a node waits for itself: a -> b -> c -> a; remove one of these edges");
  CHECK(csv("a,1,1,a:1\n") == "g.csv:2: node: a node waits for itself: a -> a; remove one of these edges");
  CHECK_THAT(csv("a,-1,1,\n"), Catch::Contains("g.csv:2:3: time_s: "));
  CHECK_THAT(csv("a,1,,\n"), Catch::Contains("g.csv:2:5: output_bytes: "));
  CHECK_THAT(csv(""), Catch::Contains("at least one row"));
  CHECK_THAT(testing::message([] { read_graph_csv("node,output_bytes,inputs\na,1,\n", "g.csv"); }),
             Catch::Contains("time_s"));

  const auto json = [](const std::string& text) { return testing::message([&] { read_graph_json(text, "g.json"); }); };
  CHECK(json("{\"nodes\": [\n{\"node\": 1, \"time_s\": 1}], \"edges\": []}") ==
        "g.json:2: nodes: node '1' has no \"output_bytes\"");
  CHECK(json("{\"nodes\": [\n{\"node\": 1, \"time_s\": -1}], \"edges\": []}") ==
        "g.json:2: time_s: -1 is not between 0 and 1e+06");
  CHECK(json("{\"nodes\": [{\"node\": 1, \"time_s\": 1, \"output_bytes\": 1}],\n\"edges\": [\n[1, 2, 3]]}") ==
        "g.json:3: edge: there is no node '2' (valid: 1)");
  CHECK(json("{\"nodes\": [],\n\"edges\": [[1, 2]]}") ==
        "g.json:2: edges: an edge is [from, to, bytes]; this one has 2 values");
  CHECK(json("[]") == "g.json:1: needs two lists, \"nodes\" and \"edges\"");
  CHECK_THAT(json("{\"nodes\": [\n{]}"), Catch::StartsWith("g.json:2: not JSON: "));
}

TEST_CASE("what is wrong with a placement has its line") {
  const NamedGraph named = read_graph_csv(kGraph, "g.csv");
  const auto message = [&](const std::string& rows) {
    return testing::message([&] { read_placement("node,device\n" + rows, "p.csv", named, 2); });
  };
  CHECK_THAT(message("left,0\n"), Catch::Contains("node 'right' has no device"));
  CHECK_THAT(message("left,2\n"), Catch::Contains("p.csv:2:6: device: "));
  CHECK_THAT(message("left,0\nleft,1\n"), Catch::Contains("p.csv:3:1: node: is placed twice"));
  CHECK_THAT(message("lift,0\n"), Catch::Contains("the graph has no node 'lift'"));
}
