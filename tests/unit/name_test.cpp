// Words that are kept once.

#include "sim/name.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

namespace epocast {
namespace {

TEST_CASE("equal texts are one name", "[name]") {
  const std::string text = "a text that is too long for a small string";
  const Name a = text, b = std::string_view(text), other = "another";
  CHECK(a == b);
  CHECK(&a.text() == &b.text());
  CHECK(a.text() == text);
  CHECK_FALSE(a == other);
  CHECK(a == text);
  CHECK(other == "another");
  CHECK_FALSE(other == "another one");
}

TEST_CASE("a name of nothing is empty, however it is made", "[name]") {
  CHECK(Name().empty());
  CHECK(Name() == Name(""));
  CHECK(Name().text().empty());
  CHECK_FALSE(Name(" ").empty());
}

TEST_CASE("names go where texts do", "[name]") {
  const Name name = "conv1";
  CHECK("layer " + name + " weights" == "layer conv1 weights");
  CHECK(fmt::format("{:>7}|", name) == "  conv1|");
  std::map<std::string, int> count;
  ++count[name];
  CHECK(count == std::map<std::string, int>{{"conv1", 1}});
}

}  // namespace
}  // namespace epocast
