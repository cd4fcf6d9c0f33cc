#pragma once
// Reads a published table from a CSV file in tidy form, one number a line.
//
//     # source: Eserol 2019, Table 5.14     (required; any number of notes beside it)
//     # note: all cells are truncated
//     workers,batch,quantity,unit,value
//     2,16,data parallelism,GB,4123
//
// The last three columns are always these; those before are the keys that find a cell. Fields are not quoted.

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace epocast {

struct PublishedCell {
  std::vector<std::string> keys;  ///< as in the columns before `quantity`
  std::string quantity;
  std::string unit;
  double value = 0;
};

class PublishedTable {
 public:
  /// Throws ConfigError with file and line for anything that is not as described above, and for cells that are there
  /// twice.
  /// `keys` are the columns that must be there before `quantity`.
  static PublishedTable load(const std::filesystem::path& file, const std::vector<std::string>& keys);
  /// The same from a stream; `name` stands for the file in messages.
  static PublishedTable read(std::istream& in, std::string name, const std::vector<std::string>& keys);

  const std::vector<PublishedCell>& cells() const { return cells_; }
  /// Throws ConfigError if there is no such cell.
  double value(const std::vector<std::string>& keys, const std::string& quantity) const;

 private:
  const PublishedCell* find(const std::vector<std::string>& keys, const std::string& quantity) const;

  std::string file_;
  std::vector<std::string> key_columns_;
  std::vector<PublishedCell> cells_;
};

}  // namespace epocast
