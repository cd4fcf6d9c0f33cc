#include "experiments/store/result_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/store/condition.hpp"
#include "sim/error.hpp"
#include "sim/fingerprint.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

constexpr int kApplication = 0x65706f63;  // "epoc": how `file` and we know our stores
constexpr int kFormat = 1;

constexpr const char* kTables = R"sql(
CREATE TABLE inputs(id INTEGER PRIMARY KEY, files TEXT NOT NULL UNIQUE);
CREATE TABLE results(key TEXT PRIMARY KEY, config TEXT NOT NULL, inputs INTEGER NOT NULL REFERENCES inputs(id),
  study TEXT NOT NULL, scenario TEXT NOT NULL, axes TEXT NOT NULL, columns TEXT NOT NULL, currency TEXT NOT NULL,
  error TEXT NOT NULL, exit_code INTEGER NOT NULL, death INTEGER NOT NULL, seconds REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX dead_results_by_config ON results(config) WHERE death <> 0;
CREATE TABLE runs(id INTEGER PRIMARY KEY, plan TEXT NOT NULL, study TEXT NOT NULL, program TEXT NOT NULL,
  started TEXT NOT NULL, scenarios INTEGER NOT NULL);
CREATE TABLE members(run INTEGER NOT NULL REFERENCES runs(id), position INTEGER NOT NULL, key TEXT NOT NULL,
  PRIMARY KEY(run, position)) WITHOUT ROWID;
)sql";
// Came later: programs that do not know it leave it alone.
constexpr const char* kStudies =
    "CREATE TABLE IF NOT EXISTS studies(run INTEGER PRIMARY KEY REFERENCES runs(id), text TEXT NOT NULL)";

constexpr const char* kRecords =
    "CREATE TABLE IF NOT EXISTS records(id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, kind TEXT NOT NULL, "
    "name TEXT NOT NULL, program TEXT NOT NULL, written TEXT NOT NULL, columns TEXT NOT NULL)";

constexpr const char* kRowColumns =
    "r.key, r.config, i.files, r.study, r.scenario, r.axes, r.columns, r.currency, r.error, r.exit_code, r.death, "
    "r.seconds";

StoredRow read_row(const Statement& s) {
  return {.key = s.text(0),
          .config = s.text(1),
          .inputs = s.text(2),
          .study = s.text(3),
          .scenario = s.text(4),
          .axes = s.text(5),
          .columns = s.text(6),
          .currency = s.text(7),
          .error = s.text(8),
          .exit_code = static_cast<int>(s.integer(9)),
          .death = static_cast<Death>(s.integer(10)),
          .seconds = s.real(11)};
}

StoredRun read_run(const Statement& s) {
  return {s.integer(0), s.text(1), s.text(2), s.text(3), s.text(4), s.integer(5), s.integer(6), s.text(7)};
}

std::int64_t pragma(const Database& database, const std::string& name) {
  Statement statement(database, "PRAGMA " + name);
  return statement.step() ? statement.integer(0) : 0;
}

}  // namespace

/// Held by who writes. A file beside the store, as SQLite locks the store itself for moments only.
class ResultStore::Lock {
 public:
  Lock(const std::filesystem::path& store, bool wait) : name_(store.string() + "-lock") {
    while (true) {
      file_ = open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      if (file_ < 0)
        throw ConfigError(Location{store.string()}, "",
                          std::string("cannot be written: ") + std::strerror(errno) + "; use another --store");
      if (flock(file_, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
        const int why = errno;
        close(file_);
        if (why == EINTR) continue;
        throw ConfigError(Location{store.string()}, "",
                          why == EWOULDBLOCK ? "another sweep writes to it; wait for its end, or use another --store "
                                               "and merge them later"
                                             : std::string("cannot be locked: ") + std::strerror(why) +
                                                   "; use a --store on another file system");
      }
      struct stat mine = {}, there = {};
      // Whoever held it may have removed it since it was opened.
      if (fstat(file_, &mine) == 0 && stat(name_.c_str(), &there) == 0 && mine.st_ino == there.st_ino) return;
      close(file_);
    }
  }
  ~Lock() {
    unlink(name_.c_str());
    close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::string name_;
  int file_ = -1;
};

ScenarioResult StoredRow::result() const {
  ScenarioResult out;
  if (!columns.empty()) set_columns(out, nlohmann::ordered_json::parse(columns));
  out.study = study;
  out.scenario = scenario;
  nlohmann::json::parse(axes).get_to(out.axes);
  out.currency = currency;
  out.error = error;
  out.exit_code = exit_code;
  return out;
}

std::string row_key(const std::string& config, const std::string& inputs) { return fingerprint(config + inputs); }

ResultStore::ResultStore(const std::filesystem::path& file, Use use)
    : lock_(use != Use::read ? std::make_unique<Lock>(file, use == Use::write_in_turn) : nullptr),
      database_(file, lock_ ? Database::Access::create : Database::Access::read) {
  if (lock_) {
    database_.run("PRAGMA journal_mode = WAL");
    // A commit outlives the end of this program at once, and that of the machine a moment later.
    database_.run("PRAGMA synchronous = NORMAL");
  }
  check_format();
  if (lock_ && pragma(database_, "application_id") == 0) create();
  if (lock_) {
    database_.run(kStudies);
    database_.run(kRecords);
  }
}

ResultStore::~ResultStore() {
  adding_.reset();
  // Without its log the file can be read where nobody may write. A failure leaves the log, which is as good.
  if (lock_) sqlite3_exec(database_.handle(), "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

void ResultStore::check_format() {
  const std::int64_t application = pragma(database_, "application_id"), format = pragma(database_, "user_version");
  const bool empty = pragma(database_, "schema_version") == 0;
  if (application == 0 && empty && lock_) return;
  const Location place{database_.file().string()};
  if (application != kApplication) throw ConfigError(place, "", "is no store of epocast; name another file");
  if (format > kFormat)
    throw ConfigError(
        place, "",
        fmt::format("is a store of a newer epocast (format {}, this one knows {}); update epocast, or use "
                    "another --store",
                    format, kFormat));
  Statement check(database_, "PRAGMA quick_check(1)");
  if (check.step() && check.text(0) != "ok")
    throw ConfigError(place, "",
                      "is damaged (" + abridged(printable(check.text(0))) + "); save what can be read with `sqlite3 " +
                          place.file + " .recover`, and sweep into a new file");
}

void ResultStore::create() {
  Transaction transaction(database_);
  database_.run(kTables);
  database_.run(fmt::format("PRAGMA application_id = {}", kApplication));
  database_.run(fmt::format("PRAGMA user_version = {}", kFormat));
  transaction.commit();
}

std::string ResultStore::select_runs() {
  return std::string("SELECT id, plan, study, program, started, scenarios, ") +
         "(SELECT count(*) FROM members WHERE run = id), " +
         (has_table("studies") ? "coalesce((SELECT text FROM studies WHERE run = id), '')" : "''") + " FROM runs ";
}

std::multimap<std::string, KnownRow> ResultStore::known() {
  std::multimap<std::string, KnownRow> out;
  Statement statement(database_, "SELECT config, key, inputs, death FROM results");
  while (statement.step())
    out.emplace(statement.text(0),
                KnownRow{statement.text(1), statement.integer(2), static_cast<Death>(statement.integer(3))});
  return out;
}

std::string ResultStore::inputs(std::int64_t number) {
  Statement statement(database_, "SELECT files FROM inputs WHERE id = ?1");
  return statement.bind(0, number).step() ? statement.text(0) : "{}";
}

std::int64_t ResultStore::number_of_inputs(const std::string& inputs) {
  if (const auto met = input_numbers_.find(inputs); met != input_numbers_.end()) return met->second;
  Statement(database_, "INSERT OR IGNORE INTO inputs(files) VALUES(?1)").bind(0, inputs).run();
  Statement find(database_, "SELECT id FROM inputs WHERE files = ?1");
  find.bind(0, inputs).step();
  return find.integer(0);
}

std::optional<StoredRun> ResultStore::last_run(const std::string& study) {
  Statement statement(database_, select_runs() + "WHERE study = ?1 ORDER BY id DESC LIMIT 1");
  if (!statement.bind(0, study).step()) return std::nullopt;
  return read_run(statement);
}

std::vector<StoredRun> ResultStore::runs() {
  std::vector<StoredRun> out;
  Statement statement(database_, select_runs() + "ORDER BY id");
  while (statement.step()) out.push_back(read_run(statement));
  return out;
}

std::map<std::int64_t, std::string> ResultStore::members(std::int64_t run) {
  std::map<std::int64_t, std::string> out;
  Statement statement(database_, "SELECT position, key FROM members WHERE run = ?1");
  statement.bind(0, run);
  while (statement.step()) out.emplace(statement.integer(0), statement.text(1));
  return out;
}

std::int64_t ResultStore::begin_run(const StoredRun& run) {
  Statement(database_, "INSERT INTO runs(plan, study, program, started, scenarios) VALUES(?1, ?2, ?3, ?4, ?5)")
      .bind(0, run.plan)
      .bind(1, run.study)
      .bind(2, run.program)
      .bind(3, run.started)
      .bind(4, run.scenarios)
      .run();
  Statement last(database_, "SELECT max(id) FROM runs");
  last.step();
  Statement(database_, "INSERT OR REPLACE INTO studies VALUES(?1, ?2)")
      .bind(0, last.integer(0))
      .bind(1, run.text)
      .run();
  return last.integer(0);
}

struct ResultStore::Adding {
  explicit Adding(const Database& database)
      : row(database, "INSERT OR REPLACE INTO results VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"),
        member(database, "INSERT OR REPLACE INTO members VALUES(?1, ?2, ?3)"),
        dead(database, "DELETE FROM results WHERE config = ?1 AND death <> 0") {}

  Statement row, member, dead;
};

void ResultStore::insert(const StoredRow& r) {
  if (!adding_) adding_ = std::make_unique<Adding>(database_);
  Statement& row = adding_->row;
  row.bind(0, r.key).bind(1, r.config).bind(2, number_of_inputs(r.inputs)).bind(3, r.study).bind(4, r.scenario);
  row.bind(5, r.axes).bind(6, r.columns).bind(7, r.currency).bind(8, r.error).bind(9, std::int64_t{r.exit_code});
  row.bind(10, static_cast<std::int64_t>(r.death)).bind(11, r.seconds).run();
}

void ResultStore::copy_rows(ResultStore& from, const std::map<std::int64_t, std::string>& keys) {
  Transaction transaction(database_);
  Statement find(from.database_, "SELECT " + std::string(kRowColumns) +
                                     " FROM results r JOIN inputs i ON i.id = r.inputs WHERE r.key = ?1");
  for (const auto& [position, key] : keys) {
    if (!find.bind(0, key).step()) continue;
    insert(read_row(find));
    find.step();  // to its end
  }
  transaction.commit();
}

void ResultStore::add(std::int64_t run, const std::vector<std::pair<std::int64_t, StoredRow>>& rows) {
  if (!adding_) adding_ = std::make_unique<Adding>(database_);
  Transaction transaction(database_);
  for (const auto& [position, row] : rows) {
    adding_->dead.bind(0, row.config).run();  // what it failed of before is of no interest any more
    insert(row);
    if (run > 0) adding_->member.bind(0, run).bind(1, position).bind(2, row.key).run();
  }
  transaction.commit();
  for (const auto& [position, r] : rows) input_numbers_.try_emplace(r.inputs, number_of_inputs(r.inputs));
}

std::optional<StoredRow> ResultStore::row(const std::string& key) {
  Statement find(database_, "SELECT " + std::string(kRowColumns) +
                                " FROM results r JOIN inputs i ON i.id = r.inputs WHERE r.key = ?1");
  if (!find.bind(0, key).step()) return std::nullopt;
  return read_row(find);
}

void ResultStore::add_members(std::int64_t run, const std::map<std::int64_t, std::string>& keys) {
  Transaction transaction(database_);
  Statement member(database_, "INSERT OR REPLACE INTO members VALUES(?1, ?2, ?3)");
  for (const auto& [position, key] : keys) member.bind(0, run).bind(1, position).bind(2, key).run();
  transaction.commit();
}

void ResultStore::add_records(const std::vector<StoredRecord>& records) {
  Transaction transaction(database_);
  Statement last(database_, "SELECT coalesce(max(batch), 0) + 1 FROM records");
  last.step();
  const std::int64_t batch = last.integer(0);
  last.step();  // to its end
  Statement insert(database_,
                   "INSERT INTO records(batch, kind, name, program, written, columns) VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  for (const StoredRecord& r : records)
    insert.bind(0, batch)
        .bind(1, r.kind)
        .bind(2, r.name)
        .bind(3, r.program)
        .bind(4, r.written)
        .bind(5, r.columns)
        .run();
  transaction.commit();
}

std::vector<StoredRecord> ResultStore::records(const std::string& kind) {
  std::vector<StoredRecord> out;
  if (!has_table("records")) return out;
  Statement statement(database_,
                      "SELECT kind, name, program, written, columns FROM records r WHERE kind = ?1 AND batch = (SELECT "
                      "max(batch) FROM records WHERE kind = r.kind AND name = r.name) ORDER BY id");
  statement.bind(0, kind);
  while (statement.step())
    out.push_back({statement.text(0), statement.text(1), statement.text(2), statement.text(3), statement.text(4)});
  return out;
}

bool ResultStore::has_table(const std::string& name) {
  Statement table(database_, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1");
  return table.bind(0, name).step();
}

void ResultStore::for_each_error(std::int64_t run, const std::function<void(int, const std::string&)>& each) {
  Statement statement(database_,
                      "SELECT r.exit_code, r.error FROM members m JOIN results r ON r.key = m.key "
                      "WHERE m.run = ?1 AND r.exit_code <> 0");
  statement.bind(0, run);
  while (statement.step()) each(static_cast<int>(statement.integer(0)), statement.text(1));
}

std::vector<StoredRow> ResultStore::rows(std::int64_t run, const std::string& condition) {
  if (run != 0) {
    const std::vector<StoredRun> all = runs();
    if (std::ranges::find(all, run, &StoredRun::id) == all.end())
      throw ConfigError(
          Location{database_.file().string()}, "",
          fmt::format("has no run {}; `results {} --runs` lists those that it has", run, database_.file().string()));
  }
  const std::string from =
      " FROM members m JOIN results r ON r.key = m.key JOIN inputs i ON i.id = r.inputs WHERE " +
      (run > 0 ? fmt::format("m.run = {}", run) : std::string("m.run IN (SELECT max(id) FROM runs GROUP BY study)")) +
      " ORDER BY m.run, m.position";
  std::vector<StoredRow> out;
  if (condition.empty()) {
    Statement statement(database_, "SELECT " + std::string(kRowColumns) + from);
    while (statement.step()) out.push_back(read_row(statement));
    return out;
  }
  // What a condition may speak of: what rows have as columns, and their axes.
  std::vector<std::string> names{"study", "scenario", "error", "exit_code", "seconds"};
  std::string columns =
      "r.study AS study, r.scenario AS scenario, r.error AS error, r.exit_code AS exit_code, r.seconds AS seconds";
  std::vector<std::vector<std::string>> values{{}, {}, {}, {"0"}, {"0"}};  // of each name, as far as kinds go
  std::set<std::string> taken(names.begin(), names.end());
  const auto add = [&](const std::string& name, const std::string& sql, const std::vector<std::string>& may_be) {
    if (!taken.insert(name).second) return;
    names.push_back(name);
    values.push_back(may_be);
    columns += ", " + sql + " COLLATE quantity AS " + sql_name(name);
  };
  const auto path = [](const std::string& name) {
    std::string text = "'$." + sql_name(name) + "'";
    return text;
  };
  const nlohmann::ordered_json fixed = columns_of(ScenarioResult{});
  for (const auto& [name, value] : fixed.items())
    add(name, fmt::format("CASE r.columns WHEN '' THEN NULL ELSE json_extract(r.columns, {}) END", path(name)),
        value.is_string() || value.is_array() ? std::vector<std::string>{} : std::vector<std::string>{"0"});
  // Numbers compare as numbers.
  const std::string axis_value =
      "CASE WHEN json_valid(json_extract(a.value, '$[1]')) THEN json_extract(json_extract(a.value, '$[1]'), '$') ELSE "
      "json_extract(a.value, '$[1]') END";
  std::map<std::string, std::vector<std::string>> axes;
  Statement met(database_, "SELECT DISTINCT json_extract(a.value, '$[0]'), " + axis_value +
                               " FROM results r, json_each(r.axes) a");
  while (met.step()) axes[met.text(0)].push_back(met.text(1));
  for (const auto& [name, may_be] : axes) {
    std::string quoted;
    for (const char c : name) quoted += c == '\'' ? "''" : std::string(1, c);
    add(name,
        "(SELECT " + axis_value + " FROM json_each(r.axes) a WHERE json_extract(a.value, '$[0]') = '" + quoted + "')",
        may_be);
  }
  try {
    const std::string keep = quoted_names(condition, names);
    {
      // The condition by itself first, without tables and without rights: so it is one expression and nothing else.
      const Condition alone(condition, names, values);
    }
    Statement statement(database_, "SELECT * FROM (SELECT " + std::string(kRowColumns) + ", " + columns + from +
                                       ") WHERE (" + keep + "\n)");
    while (statement.step()) out.push_back(read_row(statement));
  } catch (const ConfigError& problem) {
    throw ConfigError("--where " + condition_problem(problem.what(), names));
  }
  return out;
}

std::size_t ResultStore::merge(ResultStore& from) {
  std::map<std::string, std::string> mine;  // rows with a result, by key
  std::map<std::string, std::string> good;  // their keys, by configuration
  std::set<std::string> dead;               // keys of the others
  const auto know = [&](const std::string& key, const std::string& config, const std::string& says, Death death) {
    if (death != Death::none) return void(dead.insert(key));
    mine.emplace(key, fingerprint(says));
    good.emplace(config, key);
  };
  {
    Statement statement(database_, "SELECT key, config, columns || error, death FROM results");
    while (statement.step())
      know(statement.text(0), statement.text(1), statement.text(2), static_cast<Death>(statement.integer(3)));
  }
  std::size_t added = 0;
  for (const StoredRun& run : from.runs()) {
    std::int64_t id = 0;
    for (const StoredRun& own : runs())
      if (own.plan == run.plan && own.study == run.study && own.program == run.program) id = own.id;
    if (id == 0) id = begin_run(run);
    const std::vector<StoredRow> theirs = from.rows(run.id, "");
    const std::map<std::int64_t, std::string> members = from.members(run.id), own_members = this->members(id);
    std::map<std::string, const StoredRow*> by_key;
    for (const StoredRow& row : theirs) by_key.emplace(row.key, &row);
    std::vector<std::pair<std::int64_t, StoredRow>> fresh;
    std::map<std::int64_t, std::string> present;
    for (const auto& [position, key] : members) {
      const auto row = by_key.find(key);
      if (row == by_key.end()) continue;
      const StoredRow& r = *row->second;
      if (r.death != Death::none && good.contains(r.config)) {  // a result says more than a failure, whichever is newer
        const auto own = own_members.find(position);
        if (own == own_members.end() || !mine.contains(own->second)) present.emplace(position, good.at(r.config));
        continue;
      }
      const auto known = mine.find(key);
      if (known != mine.end() && known->second != fingerprint(r.columns + r.error))
        throw ConfigError(Location{from.database_.file().string()}, "",
                          fmt::format("'{}' of study {} has another result in {}, though nothing that it depends on "
                                      "differs; one of the two is not to be trusted",
                                      r.scenario, r.study, database_.file().string()));
      if (known != mine.end() || (r.death != Death::none && dead.contains(key))) {
        present.emplace(position, key);
        continue;
      }
      fresh.emplace_back(position, r);
      know(key, r.config, r.columns + r.error, r.death);
    }
    added += fresh.size();
    add(id, fresh);
    add_members(id, present);
  }
  return added;
}

std::optional<double> ResultStore::mean_seconds(const std::string& study) {
  Statement statement(database_, "SELECT avg(seconds) FROM results WHERE study = ?1");
  if (!statement.bind(0, study).step() || statement.is_null(0)) return std::nullopt;
  return statement.real(0);
}

}  // namespace epocast
