#pragma once
// Conditions over named values, as SQL writes them: `workers >= 8 and batch.per_worker * workers <= 512`.

#include <string>
#include <utility>
#include <vector>

#include "experiments/store/database.hpp"

namespace epocast {

/// The condition with those of the words that are `names` quoted, so that SQL takes them for columns however they are
/// spelt: `batch.per_worker` becomes `"batch.per_worker"`. Throws ConfigError for a word with dots that is no name.
std::string quoted_names(const std::string& condition, const std::vector<std::string>& names);

/// `name` as SQL quotes it.
std::string sql_name(const std::string& name);

/// The message of SQL about a condition, with the nearest name where it knows none of these.
std::string condition_problem(const std::string& problem, const std::vector<std::string>& names);

/// A condition that is asked for many times.
class Condition {
 public:
  /// `values`: what each of the names may be, as far as it is known. Throws ConfigError for what is no condition over
  /// these names, and for one that compares a quantity with a number, or with a quantity of another kind.
  Condition(const std::string& text, const std::vector<std::string>& names,
            const std::vector<std::vector<std::string>>& values = {});

  /// Whether it holds for these values, in the order of the names: numbers where they look like numbers, else texts;
  /// texts that are quantities compare by their value.
  bool holds(const std::vector<std::string>& values);

 private:
  std::shared_ptr<Database> database_;
  std::shared_ptr<Statement> statement_;
};

}  // namespace epocast
