// "Did you mean": the nearest known name to one that is unknown.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

namespace {

// Longer texts are no typos of a name, and the distance costs time quadratic in the length.
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestList = 600;  // characters of names that an error lists
constexpr std::size_t kShortName = 4;      // of which two typos leave too little to tell what was meant
constexpr std::size_t kShortestPart = 3;   // characters by which a part tells what was meant
constexpr std::size_t kMostMeant = 6;      // names that a question offers

// Damerau-Levenshtein distance, restricted form: swapping two neighbours counts as one edit, like inserting, deleting
// or replacing one character. Rows are kept for the last three prefixes of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// Candidates that begin with `name`, such as v100_pcie of v100; without any, those that hold it.
std::vector<std::string> longer_names(std::string_view name, const std::vector<std::string>& candidates) {
  std::vector<std::string> begin, hold;
  if (name.size() < kShortestPart) return begin;
  for (const std::string& candidate : candidates) {
    if (candidate.starts_with(name)) begin.push_back(candidate);
    if (candidate.find(name) != std::string::npos) hold.push_back(candidate);
  }
  return begin.empty() ? hold : begin;
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongestName) return "";
  const std::size_t threshold = name.size() <= kShortName ? 1 : std::max<std::size_t>(2, name.size() / 3);
  std::size_t best_distance = threshold + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t distance = edit_distance(name, candidate);
    // A distance as long as the longer name means that they share nothing: 'x' is no typo of 's'.
    if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string name_hint(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  const std::string nearest = nearest_name(name, candidates);
  std::vector<std::string> meant = longer_names(name, candidates);
  const bool is_part = !nearest.empty() && (nearest.starts_with(name) || name.starts_with(nearest));
  if (!nearest.empty() && (is_part || meant.empty())) meant = {nearest};
  if (!meant.empty() && meant.size() <= kMostMeant) {
    std::string question = " (did you mean '" + meant.front() + "'";
    for (std::size_t i = 1; i < meant.size(); ++i)
      question += (i + 1 < meant.size() ? ", '" : " or '") + meant[i] + "'";
    return question + "?)";
  }
  std::string valid;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (valid.size() > kLongestList)
      return " (valid: " + valid + ", and " + std::to_string(candidates.size() - i) + " more)";
    valid += (valid.empty() ? "" : ", ") + candidates[i];
  }
  return " (valid: " + valid + ")";
}

}  // namespace epocast
