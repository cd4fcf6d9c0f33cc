#pragma once
// Reads a table of comma-separated values strictly: every cell knows its file, line and column; `# key: value` lines
// before the column names make a header. Fields may be quoted ("a, b"; "" inside is one quote).

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

class CsvTable;

class CsvRow {
 public:
  /// `starts`: of the fields in their line, in bytes from 1.
  CsvRow(const CsvTable& table, std::vector<std::string> fields, std::vector<int> starts, int line)
      : table_(&table), fields_(std::move(fields)), starts_(std::move(starts)), line_(line) {}

  /// The cell of a column; REQUIRES that the table has it.
  const std::string& text(const std::string& column) const;
  bool empty(const std::string& column) const { return text(column).empty(); }
  /// A finite number within the range. Throws ConfigError.
  double number(const std::string& column, Range range) const;
  /// A time of a kernel or message, positive and at most 1e6 s, given in `unit` seconds. Throws ConfigError.
  double seconds(const std::string& column, double unit = 1) const;
  std::int64_t whole(const std::string& column, Range range) const;
  int line() const { return line_; }
  /// A ConfigError at this row; `column` may be empty.
  ConfigError error(const std::string& column, const std::string& problem) const;

 private:
  const CsvTable* table_;
  std::vector<std::string> fields_;
  std::vector<int> starts_;
  int line_;
};

class CsvTable {
 public:
  /// Throws ConfigError, with file and line, if the file cannot be read, a row has another number of fields than there
  /// are columns, a column is named twice, a quote is not closed, or the last line does not end (the file is cut off).
  static CsvTable load(const std::filesystem::path& file);
  static CsvTable read(std::istream& in, std::string name);

  CsvTable(CsvTable&&) = delete;  // rows point to their table

  struct HeaderValue {
    std::string text;
    int line = 0;
  };

  const std::string& file() const { return file_; }
  const std::map<std::string, HeaderValue>& header() const { return header_; }  ///< `note` may repeat; kept once
  const std::vector<std::string>& columns() const { return columns_; }
  int columns_line() const { return columns_line_; }
  const std::vector<CsvRow>& rows() const { return rows_; }
  bool has(const std::string& column) const;

  /// Throws ConfigError unless all `required` columns are there and no others than those and the `optional` ones.
  void check_columns(const std::vector<std::string>& required, const std::vector<std::string>& optional) const;
  /// Throws ConfigError for a header key that is not in the list, or a missing one of `required`.
  void check_header(const std::vector<std::string>& required, const std::vector<std::string>& optional) const;
  ConfigError error(int line, const std::string& key, const std::string& problem) const;

 private:
  CsvTable(std::istream& in, std::string name);
  void read_header_line(const std::string& line, int number);

  std::string file_;
  std::map<std::string, HeaderValue> header_;
  std::vector<std::string> columns_;
  std::vector<int> starts_;  ///< of the columns' names
  int columns_line_ = 0;
  std::vector<CsvRow> rows_;
};

}  // namespace epocast
