#include "experiments/store/database.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "sim/error.hpp"
#include "sim/quantity_unit.hpp"

namespace epocast {
namespace {

constexpr int kPatience = 10'000;  // ms that another process may hold the file

/// What a statement that only reads may do.
int allow_reading(void* /*unused*/, int action, const char* /*table*/, const char* detail, const char* /*database*/,
                  const char* /*trigger*/) {
  if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE) return SQLITE_OK;
  if (action != SQLITE_FUNCTION || detail == nullptr) return SQLITE_DENY;
  // Not load_extension, readfile and the like.
  constexpr std::string_view kPlain[] = {
      "abs",   "avg", "coalesce", "count",  "glob",  "ifnull", "iif",   "instr", "json_extract", "length", "like",
      "lower", "max", "min",      "nullif", "round", "substr", "sum",   "total", "trim",         "typeof", "upper",
      "->",    "->>", "floor",    "ceil",   "sqrt",  "ln",     "log10", "log2",  "pow",          "exp"};
  return std::ranges::find(kPlain, std::string_view(detail)) != std::end(kPlain) ? SQLITE_OK : SQLITE_DENY;
}

/// The order of texts in the collation `quantity`: one order of all, as an index of SQLite's wants it.
int compare_quantities(void* /*unused*/, int size_a, const void* text_a, int size_b, const void* text_b) {
  const std::string_view a(static_cast<const char*>(text_a), static_cast<std::size_t>(size_a));
  const std::string_view b(static_cast<const char*>(text_b), static_cast<std::size_t>(size_b));
  const std::optional<AnyQuantity> left = any_quantity(a), right = any_quantity(b);
  if (left.has_value() != right.has_value()) return left ? -1 : 1;
  if (!left) return a.compare(b);
  if (const int kinds = left->kind.compare(right->kind); kinds != 0) return kinds;
  return left->value < right->value ? -1 : left->value > right->value ? 1 : 0;
}

}  // namespace

Database::Database(const std::filesystem::path& file, Access access) : file_(file) {
  std::error_code unknown;  // then opening it says more
  if (access == Access::read && !std::filesystem::exists(file, unknown) && !unknown)
    throw ConfigError(Location{file.string()}, "", "no such file");
  // Who reads may have to put back first what a writer left half done when it was killed.
  const int flags = access == Access::read     ? SQLITE_OPEN_READWRITE
                    : access == Access::create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                               : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
  const int code = sqlite3_open_v2(access == Access::memory ? ":memory:" : file.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    try {
      fail(code);
    } catch (...) {
      sqlite3_close(handle_);
      throw;
    }
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, kPatience);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);  // "x" is a name, never a text
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_create_collation(handle_, "quantity", SQLITE_UTF8, nullptr, compare_quantities);
  if (access == Access::read) sqlite3_exec(handle_, "PRAGMA query_only = 1", nullptr, nullptr, nullptr);
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::fail(int code) const {
  const std::string what = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const std::string name = file_.empty() ? "database" : file_.string();
  switch (code & 0xff) {
    case SQLITE_FULL:
      throw ConfigError(Location{name}, "",
                        "the disk is full; what was stored before is safe: make room, then run the same again");
    case SQLITE_READONLY:
      if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY)
        throw ConfigError(Location{name}, "",
                          "a writer was killed, and what it left half done has to be put back first; allow writing to "
                          "the file and its folder, or copy it to where you may, with its -journal or -wal");
      [[fallthrough]];
    case SQLITE_PERM:
      throw ConfigError(Location{name}, "", "cannot be written (" + what + "); use another --store, or allow writing");
    case SQLITE_CANTOPEN:
      throw ConfigError(Location{name}, "",
                        "cannot be opened (" + what + "); does its folder exist, and may you write to it?");
    case SQLITE_NOTADB: throw ConfigError(Location{name}, "", "is no store of results; name another file");
    case SQLITE_CORRUPT:
      throw ConfigError(Location{name}, "",
                        "is damaged (" + what + "); save what can be read with `sqlite3 " + name +
                            " .recover`, and sweep into a new file");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw ConfigError(Location{name}, "", "another process uses it and does not let go; try again when it has ended");
    case SQLITE_IOERR:
      throw ConfigError(Location{name}, "", "cannot be read or written (" + what + "); is the disk full or gone?");
    case SQLITE_AUTH:
      throw ConfigError(what == "not authorized"
                            ? "a condition may only compare columns; no other statements or functions"
                            : what + ": a condition may only compare columns");
    default: throw ConfigError(what);
  }
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Database::only_select() { sqlite3_set_authorizer(handle_, allow_reading, nullptr); }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(const Database& database, const std::string& sql) : database_(&database) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  check(sqlite3_prepare_v2(database.handle(), sql.c_str(), static_cast<int>(sql.size() + 1), &statement, &rest));
  statement_.reset(statement);
  if (rest != nullptr && std::string_view(rest).find_first_not_of(" \n\t;") != std::string_view::npos)
    throw ConfigError("a condition is one expression, without ';'");
}

void Statement::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) database_->fail(code);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), parameter + 1, value));
  return *this;
}
Statement& Statement::bind(int parameter, double value) {
  check(sqlite3_bind_double(statement_.get(), parameter + 1, value));
  return *this;
}
Statement& Statement::bind(int parameter, std::string_view value) {
  check(
      sqlite3_bind_text64(statement_.get(), parameter + 1, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}
Statement& Statement::bind_null(int parameter) {
  check(sqlite3_bind_null(statement_.get(), parameter + 1));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    const int why = sqlite3_extended_errcode(database_->handle());
    try {
      database_->fail(why);
    } catch (...) {
      sqlite3_reset(statement_.get());
      throw;
    }
  }
  check(sqlite3_reset(statement_.get()));
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }
std::string Statement::name(int column) const { return sqlite3_column_name(statement_.get(), column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
bool Statement::is_number(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string Statement::text(int column) const {
  const auto* const bytes = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes), size);
}

Transaction::~Transaction() {
  // A failure here is one of what is being undone, which has been reported.
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace epocast
