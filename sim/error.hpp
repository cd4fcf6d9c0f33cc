#pragma once
// The three kinds of failure that reach a user. Only main() turns them into exit codes.

#include <stdexcept>
#include <string>

namespace epocast {

/// A place in a user's file. Line and column (in bytes) count from 1; 0 means unknown.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

/// "file:line:col", without the parts that are unknown.
std::string to_string(const Location& where);

/// Bad input (exit code 2). what() is `file:line:col: path.to.key: problem`.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(Location where, std::string key_path, std::string problem);
  /// Without a place: command-line values and the like.
  explicit ConfigError(std::string problem);

  const Location& where() const { return where_; }
  const std::string& key_path() const { return key_path_; }
  const std::string& problem() const { return problem_; }

 private:
  Location where_;
  std::string key_path_;
  std::string problem_;
};

/// A simulation that cannot go on, such as a deadlock (exit code 1 or 3). what() says who waits for whom.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace epocast
