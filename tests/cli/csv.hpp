#pragma once
// What the program prints as CSV.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/cli/text.hpp"

namespace epocast::test {

/// The program's CSV: a header and a map from column to text for each row.
struct Csv {
  std::string header;
  std::vector<std::map<std::string, std::string>> rows;
};

inline Csv read_csv(const std::string& text) {
  const std::vector<std::string> lines = split(text, '\n');
  REQUIRE_FALSE(lines.empty());
  Csv csv{lines.front(), {}};
  const std::vector<std::string> columns = csv_fields(lines.front());
  for (std::size_t l = 1; l < lines.size(); ++l) {
    const std::vector<std::string> fields = csv_fields(lines[l]);
    REQUIRE(fields.size() == columns.size());
    csv.rows.emplace_back();
    for (std::size_t c = 0; c < columns.size(); ++c) csv.rows.back()[columns[c]] = fields[c];
  }
  return csv;
}

inline Csv run_csv(std::vector<std::string> arguments, const TemporaryFolder& folder) {
  arguments.insert(arguments.end(), {"--format", "csv"});
  return read_csv(run_good(arguments, folder).out);
}

inline double number(const Csv& csv, std::size_t row, const std::string& column) {
  return std::stod(csv.rows.at(row).at(column));
}

}  // namespace epocast::test
