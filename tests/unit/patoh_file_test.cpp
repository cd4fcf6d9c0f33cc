#include "experiments/partition/patoh_file.hpp"

#include <catch2/catch.hpp>

#include <sstream>

#include "tests/support/error_message.hpp"

namespace epocast::patoh_file_test {

namespace {

std::string problem(const std::string& text) {
  return testing::message([&] {
    std::istringstream in(text);
    read_patoh(in, "h.patoh");
  });
}

std::string partition_problem(const std::string& text, int vertices, int parts) {
  return testing::message([&] {
    std::istringstream in(text);
    read_partition(in, "p.part", vertices, parts);
  });
}

}  // namespace

TEST_CASE("a PaToH file is read and written back") {
  // Shaped like the sample in Eserol 2019, Figure 3.5: base, vertices, nets, pins, 3; a net's cost before its pins; all
  // weights at the end.
  const std::string text = "% a comment\n1 4 3 8 3\n5 1 2 3\n1 2 4\n\n2 1 3 4\n1 2\n3 4\n";
  std::istringstream in(text);
  const Hypergraph graph = read_patoh(in, "h.patoh");
  CHECK(graph.vertices() == 4);
  CHECK(graph.nets() == 3);
  CHECK(graph.cost(0) == 5);
  CHECK(std::vector<int>(graph.pins(2).begin(), graph.pins(2).end()) == std::vector<int>{0, 2, 3});
  CHECK(graph.weight(3) == 4);
  std::ostringstream out;
  write_patoh(out, graph);
  CHECK(out.str() == "0 4 3 8 3\n5 0 1 2\n1 1 3\n2 0 2 3\n1 2 3 4\n");
}

TEST_CASE("costs and weights are optional in PaToH files") {
  std::istringstream in("0 2 1 2\n0 1\n");
  const Hypergraph graph = read_patoh(in, "h.patoh");
  CHECK(graph.cost(0) == 1);
  CHECK(graph.weight(1) == 1);
}

TEST_CASE("numbers that are not whole are scaled for PaToH") {
  Hypergraph graph;
  graph.add_vertex(0.5);
  graph.add_vertex(0.25);
  std::ostringstream out;
  write_patoh(out, graph);
  // 2^30 / 0.75
  CHECK(out.str() == "% weights are multiplied by 1431655765.3333333 and rounded\n0 2 0 0 3\n715827883 357913941\n");
}

TEST_CASE("bad PaToH files are refused with their line") {
  CHECK(problem("") == "h.patoh: is empty; the first line must be BASE VERTICES NETS PINS [SCHEME]");
  CHECK(problem("0 3\n") == "h.patoh:1: the first line has 2 numbers; it must be BASE VERTICES NETS PINS [SCHEME]");
  CHECK(problem("2 3 1 2\n") == "h.patoh:1: the base must be a whole number from 0 to 1, not '2'");
  CHECK(problem("0 2 1 2\n0 2\n") == "h.patoh:2: a pin must be a whole number from 0 to 1, not '2'");
  CHECK(problem("0 2 1 2\n0 0\n") == "h.patoh:2: vertex 0 is twice in this net");
  CHECK(problem("0 2 2 4\n0 1\n") == "h.patoh:2: ends after 1 of 2 nets");
  CHECK(problem("0 2 1 3\n0 1\n") == "h.patoh:2: there are 2 pins, but the first line says 3");
  CHECK(problem("0 2 1 2 1\n0 1\n1\n") == "h.patoh:3: ends after the weights of 1 of 2 vertices");
  CHECK(problem("0 2 1 2 1\n0 1\n1 -1\n") == "h.patoh:3: a vertex's weight must be a number >= 0, not '-1'");
  CHECK(problem("0 2 1 2\n0 1\n5\n") == "h.patoh:3: goes on after the last number that the first line announces");
}

TEST_CASE("partition files name every vertex once and only parts that exist") {
  std::istringstream in("0 1\n1\n");
  CHECK(read_partition(in, "p.part", 3, 2).part_of == std::vector<int>{0, 1, 1});
  CHECK(partition_problem("0\n1\n", 3, 2) ==
        "p.part:2: has parts for 2 vertices, but there are 3: vertex 2 is the first without one");
  CHECK(partition_problem("0\n1\n1\n0\n", 3, 2) == "p.part:4: names more vertices than the 3 that there are");
  CHECK(partition_problem("0\n2\n1\n", 3, 2) ==
        "p.part:2: the part of vertex 1 must be a whole number from 0 to 1, not '2'");
}

}  // namespace epocast::patoh_file_test
