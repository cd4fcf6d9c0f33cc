#pragma once
// SQLite, with errors that say which file, why, and what to do.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace epocast {

/// A connection to a database. The collation `quantity` compares texts that are quantities of one kind by their value,
/// "4 kB" before "1 MiB"; others as texts, after quantities. All functions throw ConfigError for what SQLite refuses: a
/// full disk, a file that cannot be written or is damaged, another process that does not let go.
class Database {
 public:
  enum class Access {
    create,  ///< read and write; made if there is none
    read,    ///< no statement can change anything; what a killed writer left half done is put back
    memory,  ///< a new one without a file
  };
  Database(const std::filesystem::path& file, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs statements that give no rows.
  void run(const std::string& sql);
  /// From now on refuses statements that do anything but read tables and call SQLite's plain functions.
  void only_select();
  const std::filesystem::path& file() const { return file_; }
  sqlite3* handle() const { return handle_; }
  /// Throws what `code` of the last call means.
  [[noreturn]] void fail(int code) const;

 private:
  std::filesystem::path file_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement. Parameters and columns count from 0. REQUIRES: its database outlives it.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);

  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view value);
  Statement& bind_null(int parameter);
  /// The next row; false at the end, where the statement can be bound and run again.
  bool step();
  /// Runs to the end.
  void run();

  int columns() const;
  std::string name(int column) const;
  bool is_null(int column) const;
  bool is_number(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check(int code) const;

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Everything between its making and commit(), or nothing.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace epocast
