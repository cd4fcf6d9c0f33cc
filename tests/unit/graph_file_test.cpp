// Operator graphs and placements in files.
#include <catch2/catch.hpp>
#include <sstream>

#include "experiments/place/place_job.hpp"
#include "tests/support/error_message.hpp"

namespace epocast::graph_file_test {

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
  CHECK(json("{\"nodes\": [\n{\"node\": \"a\", \"time_s\": 1, \"output_bytes\": 1, \"lifetimes\": \"normal\"}],"
             "\"edges\": []}") == "g.json:2: nodes: unknown key 'lifetimes' (did you mean 'lifetime'?)");
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

namespace {

struct NamedEdge {
  std::string from, to;
  double bytes;
  friend bool operator==(const NamedEdge& a, const NamedEdge& b) {
    return a.from == b.from && a.to == b.to && a.bytes == b.bytes;
  }
};

std::vector<NamedEdge> edges_of(const NamedGraph& named) {
  std::vector<NamedEdge> out;
  for (std::size_t e = 0; e < named.graph.edges(); ++e)
    out.push_back({named.nodes[named.graph.from[e]], named.nodes[named.graph.to[e]], named.graph.bytes[e]});
  return out;
}

}  // namespace

TEST_CASE("a Chakra trace of PyTorch: who wrote a storage comes before who reads it") {
  // linear calls mm, which is what runs. 6 and 8 values of 4 bytes were there before; relu_ works in mm's 12.
  const NamedGraph named = read_any_json(R"({"schema": "1.1.1-chakra.0.0.4", "nodes": [
    {"id": 1, "name": "process", "ctrl_deps": 1, "inputs": {"values": []}, "outputs": {"values": []}},
    {"id": 2, "name": "aten::linear", "ctrl_deps": 1, "inputs": {"values": []}, "outputs": {"values": []}},
    {"id": 3, "name": "aten::mm", "ctrl_deps": 2, "exclusive_dur": 5,
     "inputs": {"values": [[10, 1, 0, 6, 4, "cuda:0"], [11, 2, 0, 8, 4, "cuda:0"]]},
     "outputs": {"values": "[[12, 3, 0, 12, 4, 'cuda:0'], None]"}},
    {"id": 4, "name": "aten::relu_", "ctrl_deps": 1, "exclusive_dur": 2,
     "inputs": {"values": [[12, 3, 0, 12, 4, "cuda:0"]]}, "outputs": {"values": [[12, 3, 0, 12, 4, "cuda:0"]]}}]})",
                                         "t.json");
  CHECK(named.nodes == std::vector<std::string>{"storage/1", "storage/2", "aten::mm/3", "aten::relu_/4"});
  CHECK(edges_of(named) == std::vector<NamedEdge>{{"storage/1", "aten::mm/3", 24},
                                                  {"storage/2", "aten::mm/3", 32},
                                                  {"aten::mm/3", "aten::relu_/4", 48}});
  CHECK(named.graph.memory == std::vector<double>{24, 32, 48, 0});
  CHECK(named.graph.lifetime[0] == Lifetime::residual);
  CHECK(named.graph.lifetime[3] == Lifetime::reference);
  CHECK(named.graph.group[2] == named.graph.group[3]);
  CHECK(named.graph.time[2] == to_ticks(5e-6));
}

TEST_CASE("a trace in Chakra's own schema: nodes name those that they wait for") {
  const NamedGraph named = read_any_json(R"({"version": "0.0.4"}
{"id": "1", "name": "a", "durationMicros": "10", "attr": [{"name": "tensor_size", "uint64Val": "100"}]}
{"id": "2", "name": "b", "durationMicros": "20", "dataDeps": ["1"]})",
                                         "t.json");
  CHECK(edges_of(named) == std::vector<NamedEdge>{{"a/1", "b/2", 100}});
  CHECK(named.graph.time == std::vector<Ticks>{to_ticks(10e-6), to_ticks(20e-6)});
}

TEST_CASE("a trace of PyTorch's profiler: a chain of operators, and what autograd reads of the forward pass") {
  // mm and relu launch a kernel each, the gradient of relu one within its backward function. relu reads 2 x 4 halves,
  // which are mm's output; its gradient reads them too (sequence number 8), and 2 x 4 floats.
  const NamedGraph named = read_any_json(R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 10,
     "args": {"External id": 1, "Sequence number": 7, "Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 20, "dur": 5,
     "args": {"External id": 2, "Sequence number": 8, "Input Dims": [[2, 4]], "Input type": ["c10::Half"]}},
    {"ph": "X", "cat": "cpu_op", "name": "ReluBackward0", "pid": 1, "tid": 2, "ts": 30, "dur": 20,
     "args": {"External id": 3, "Sequence number": 8, "Fwd thread id": 1, "Input Dims": [[2, 4]]}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::threshold_backward", "pid": 1, "tid": 2, "ts": 35, "dur": 10,
     "args": {"External id": 4, "Input Dims": [[2, 4], [2, 4]]}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 5, "dur": 100, "args": {"External id": 1}},
    {"ph": "X", "cat": "kernel", "name": "relu", "ts": 105, "dur": 50, "args": {"External id": 2}},
    {"ph": "X", "cat": "kernel", "name": "threshold", "ts": 155, "dur": 60, "args": {"External id": 4}}]})",
                                         "t.json");
  CHECK(edges_of(named) == std::vector<NamedEdge>{{"aten::mm/0", "aten::relu/1", 16},
                                                  {"aten::mm/0", "aten::threshold_backward/2", 16},
                                                  {"aten::relu/1", "aten::threshold_backward/2", 32}});
  CHECK(named.graph.time == std::vector<Ticks>{to_ticks(100e-6), to_ticks(50e-6), to_ticks(60e-6)});
  CHECK(named.graph.memory == std::vector<double>{16, 32, 0});
}

TEST_CASE("a trace of PyTorch's profiler: kernels go to their operators however these are named") {
  // mm runs for 1000 us on the GPU, relu for 100 us. What mm's kernel and its launch, within mm on the host, say of it
  // differs between versions of PyTorch.
  const auto read = [](const std::string& kernel, const std::string& launch, const std::string& more = "") {
    return read_any_json(R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 50, "args": {"External id": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {)" +
                             launch + R"(}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 20, "dur": 1000, "args": {)" +
                             kernel + R"(}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 60, "dur": 20, "args": {"External id": 2}},
    {"ph": "X", "cat": "kernel", "name": "relu", "ts": 1100, "dur": 100, "args": {"External id": 2}})" +
                             more + "]}",
                         "t.json");
  };
  const std::vector<Ticks> times{to_ticks(1000e-6), to_ticks(100e-6)};
  const std::string id = R"("External id": 1)", link = R"("correlation": 5)";
  for (const auto& [kernel, launch] :
       std::vector<std::pair<std::string, std::string>>{{id, link},
                                                        {link, link + ", " + id},
                                                        {link, link},
                                                        {R"("External id": 0, )" + link, link + ", " + id},
                                                        {R"("External id": 999, )" + link, link + ", " + id}}) {
    CAPTURE(kernel, launch);
    const NamedGraph named = read(kernel, launch);
    CHECK(named.graph.time == times);
    CHECK(named.warnings.empty());
  }
  // Of 1375 us of kernels, nobody launched 275.
  const NamedGraph named = read(id, link, R"(, {"ph": "X", "cat": "kernel", "ts": 1200, "dur": 275})");
  CHECK(named.graph.time == times);
  CHECK(named.warnings == std::vector<std::string>{"t.json: 20.0 % of the GPU's time is left out, of kernels that "
                                                   "cannot be traced to an operator"});
  CHECK_THAT(testing::message([] {
               read_any_json(R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 50, "args": {"External id": 1}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 20, "dur": 1000}]})",
                             "t.json");
             }),
             Catch::StartsWith("t.json:1: traceEvents: no kernel on the GPU can be traced to an operator"));
}

TEST_CASE("what is wrong with a trace is said with its line") {
  const auto message = [](const std::string& text) { return testing::message([&] { read_any_json(text, "t.json"); }); };
  CHECK(message("{\"nodes\": [\n{\"id\": 1, \"name\": \"a\", \"data_deps\": []}]}") ==
        "t.json:1: nodes: no node has a duration; link the trace with the profiler's (chakra_trace_link)");
  CHECK(message("{\"nodes\": [\n{\"id\": 1, \"duration_micros\": 1, \"data_deps\": [7]}]}") ==
        "t.json:2: data_deps: there is no node 7");
  CHECK(message("{\"nodes\": [\n{\"id\": 1, \"dur\": -1, \"data_deps\": []}]}") ==
        "t.json:2: dur: -1 us is no duration");
  CHECK(message("{\"nodes\": [{\"id\": 1, \"dur\": 1, \"data_deps\": []},\n{\"id\": 1}]}") ==
        "t.json:2: id: there is a node 1 already");
  CHECK(message("{\"traceEvents\": [\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"ts\": 1}]}") ==
        "t.json:2: traceEvents[0].dur: must be a number of microseconds");
  CHECK(message("{\"traceEvents\": []}") == "t.json:1: traceEvents: holds no operators (\"cat\": \"cpu_op\")");
  CHECK_THAT(message("{\"traceEvents\": ["), Catch::Contains("is the file cut off?"));
}

}  // namespace epocast::graph_file_test
