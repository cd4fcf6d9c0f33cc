#pragma once
// Results of scenarios in a file that survives whatever ends the program: SQLite, with a write-ahead log.
//
// A row is known by its key, a fingerprint of all that its result depends on: the program, the scenario's configuration
// and every file that was read. Rows that have another key stay. A run is a list of rows, one for each scenario of a
// study, in order; what is listed is the last run of each study.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/result.hpp"
#include "experiments/store/database.hpp"

namespace epocast {

/// Why a scenario has no result, as far as that decides whether it is simulated again.
enum class Death {
  none,     ///< it has one
  own,      ///< it took too long, or more than there is: again if asked for
  outside,  ///< somebody ended its process, or a file was not there: again
};

/// A row, as it is stored.
struct StoredRow {
  std::string key = {};
  std::string config = {};  ///< fingerprint of program and configuration
  std::string inputs = {};  ///< JSON object: files read, by name, and their fingerprints
  std::string study = {}, scenario = {};
  std::string axes = {};     ///< JSON list of pairs
  std::string columns = {};  ///< JSON object; empty without a result
  std::string currency = {}, error = {};
  int exit_code = 0;
  Death death = Death::none;
  double seconds = 0;  ///< that it took to simulate

  ScenarioResult result() const;
};

/// What is known of a row before it is read.
struct KnownRow {
  std::string key = {};
  std::int64_t inputs = 0;  ///< see ResultStore::inputs()
  Death death = Death::none;
};

/// A list of rows that was made by one command.
struct StoredRun {
  std::int64_t id = 0;
  std::string plan = {};  ///< fingerprint of all its configurations, in order
  std::string study = {};
  std::string program = {};
  std::string started = {};    ///< UTC
  std::int64_t scenarios = 0;  ///< that it wants
  std::int64_t stored = 0;     ///< that are there
  std::string text = {};       ///< the study, YAML; "" in stores of before there was any
};

/// Rows of another kind than scenarios' results: comparisons with published numbers, and fits.
struct StoredRecord {
  std::string kind = {};     ///< of the command that wrote it: "reproduce", "calibrate"
  std::string name = {};     ///< of the target, or of the device
  std::string program = {};  ///< that wrote it
  std::string written = {};  ///< UTC
  std::string columns = {};  ///< JSON object
};

class ResultStore {
 public:
  enum class Use {
    write,
    write_in_turn,  ///< waits until no other process writes to it
    read
  };
  /// Throws ConfigError for what is no store, is one of a newer program, is damaged, or cannot be read or written; and,
  /// for `write`, where another process writes to it.
  ResultStore(const std::filesystem::path& file, Use use);
  ~ResultStore();
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;

  /// Rows by configuration; several if files have changed in between.
  std::multimap<std::string, KnownRow> known();
  /// What the rows of this number have read: a JSON object.
  std::string inputs(std::int64_t number);

  /// The last run of a study; nothing if there is none.
  std::optional<StoredRun> last_run(const std::string& study);
  std::vector<StoredRun> runs();
  /// Keys of a run's rows by their positions.
  std::map<std::int64_t, std::string> members(std::int64_t run);
  /// Begins a run of so many scenarios. Returns its number.
  std::int64_t begin_run(const StoredRun& run);

  std::optional<StoredRow> row(const std::string& key);
  /// Stores rows at once, and what they are in a run (0: in none): durable when this returns, all or none.
  void add(std::int64_t run, const std::vector<std::pair<std::int64_t, StoredRow>>& rows);
  /// Stores records of one kind and name; those of before stay. Durable when this returns, all or none.
  void add_records(const std::vector<StoredRecord>& records);
  /// Records of a kind: the last written of each name.
  std::vector<StoredRecord> records(const std::string& kind);
  /// Makes rows that are there members of a run, at these positions.
  void add_members(std::int64_t run, const std::map<std::int64_t, std::string>& keys);

  /// Takes over rows of another store by their keys, as members of no run.
  void copy_rows(ResultStore& from, const std::map<std::int64_t, std::string>& keys);

  /// Tells `each` exit code and error of a run's rows that have one.
  void for_each_error(std::int64_t run, const std::function<void(int, const std::string&)>& each);
  /// Rows of a run in order, or of the last run of every study (0). `condition`: SQL over the columns, "" for all.
  /// Throws ConfigError for a run that is not there.
  std::vector<StoredRow> rows(std::int64_t run, const std::string& condition);
  /// Takes over all runs and rows of another store: runs of the same plan become one. Returns how many rows are new.
  /// Throws ConfigError if a row of the same key has another result.
  std::size_t merge(ResultStore& from);

  /// Seconds that the study's scenarios took on average; nothing if there are none.
  std::optional<double> mean_seconds(const std::string& study);

 private:
  class Lock;
  struct Adding;
  void create();
  std::string select_runs();
  void check_format();
  bool has_table(const std::string& name);
  std::int64_t number_of_inputs(const std::string& inputs);
  void insert(const StoredRow& row);

  std::unique_ptr<Lock> lock_;  // before the database, which it protects
  Database database_;
  std::unique_ptr<Adding> adding_;                     ///< made by the first add()
  std::map<std::string, std::int64_t> input_numbers_;  ///< of those met so far
};

/// What a row's key is made of.
std::string row_key(const std::string& config, const std::string& inputs);

}  // namespace epocast
