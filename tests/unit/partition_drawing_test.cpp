// A partition as a picture.
#include <catch2/catch.hpp>

#include <sstream>

#include "experiments/partition/partition_drawing.hpp"

namespace epocast::partition_drawing_test {

namespace {

std::string drawing(int parts) {
  FilterNetwork network;
  network.layers.resize(1);
  network.layers[0].name = "conv";
  LayerShares shares;
  shares.share = {std::vector<double>(static_cast<std::size_t>(parts), 1.0 / parts)};
  shares.root = {0};
  std::ostringstream out;
  draw_partition(out, network, shares, "a network");
  return out.str();
}

}  // namespace

TEST_CASE("columns of a drawn partition have the parts' numbers") {
  const std::string four = drawing(4);
  for (const char* part : {">0<", ">1<", ">2<", ">3<"}) CHECK(four.find(part) != std::string::npos);
  // 300 columns of 4 pixels: three digits of 11 pixels take 0.62 * 33 = 20.5 and a gap of 4, so every seventh.
  const std::string many = drawing(300);
  for (const char* part : {">0<", ">7<", ">14<", ">294<"}) CHECK(many.find(part) != std::string::npos);
  for (const char* part : {">1<", ">8<", ">299<"}) CHECK(many.find(part) == std::string::npos);
}

}  // namespace epocast::partition_drawing_test
