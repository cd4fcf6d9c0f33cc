// Tables that fit: which columns go, and where lines break.
#include <catch2/catch.hpp>

#include <iterator>
#include <sstream>

#include "experiments/result_table.hpp"
#include "experiments/text_table.hpp"

namespace epocast::text_table_test {

TEST_CASE("columns make room in their order, and no more of them than needed") {
  const Cells all{{"name", "time", "bytes", "memory"}, {"a", "1 s", "12 GiB", "3 GB"}};
  // 2 + 4, 2 + 4, 2 + 6, 2 + 6 characters.
  for (const auto& [width, left] : {std::pair<std::size_t, std::size_t>{28, 0}, {27, 1}, {20, 1}, {19, 2}, {5, 2}}) {
    Cells rows = all;
    const std::vector<std::string> gone = fit_columns(rows, width, {"bytes", "speed", "memory"});
    INFO(width);
    CHECK(gone.size() == left);
    for (const auto& row : rows) CHECK(row.size() == 4 - left);
    if (left > 0) CHECK(gone.front() == "bytes");
    if (left > 1) CHECK(rows.back() == std::vector<std::string>{"a", "1 s"});
  }
}

TEST_CASE("lines break between words") {
  CHECK(wrapped("  one two three", 9, 4) == "  one two\n    three");
  CHECK(wrapped("one  two", 8, 4) == "one  two");
  CHECK(wrapped("one  two", 7, 1) == "one\n two");
  CHECK(wrapped("  longerthanthat is", 5, 2) == "  longerthanthat\n  is");
  CHECK(wrapped("µµ µµ", 5, 2) == "µµ µµ");  // characters, not bytes
  CHECK(wrapped("", 5, 2).empty());
}

TEST_CASE("a table for a narrow terminal says what it leaves out, and no line is longer") {
  ScenarioResult result;
  result.study = "narrow";
  result.limited_by = "forward conv1_1..fc8 -> backward fc8..conv1_1 -> update fc8..conv1_1";
  result.workers = 4;
  std::ostringstream wide, narrow;
  write_tables(wide, {result}, TableStyle::aligned);
  write_tables(narrow, {result}, TableStyle::aligned, 60);
  CHECK(wide.str().find("no room") == std::string::npos);
  CHECK(narrow.str().find("no room for sent/epoch, ") != std::string::npos);
  std::istringstream lines(narrow.str());
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 60);
  const auto words = [](const std::string& text) {
    std::istringstream in(text.substr(text.find("limited by")));
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  CHECK(words(wide.str()) == words(narrow.str()));
}

}  // namespace epocast::text_table_test
