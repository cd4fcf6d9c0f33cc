// Names of operations, algorithms and levels, as studies spell them.
#include <algorithm>
#include <stdexcept>

#include "sim/collectives/algorithms.hpp"
#include "sim/config.hpp"

namespace epocast {
namespace {

// In the order of the enumerations. Of operations, those that a graph may have.
const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                                 "broadcast",  "reduce",         "gather",     "scatter"};
  return names;
}

constexpr const char* kSend = "send";

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const collectives::Algorithm& algorithm : collectives::algorithms()) all.emplace_back(algorithm.name);
    return all;
  }();
  return names;
}

const std::vector<std::string>& choice_names() {
  static const std::vector<std::string> names = {"auto", "nccl", "mpi"};
  return names;
}

/// What a study may name: algorithms, then choices.
const std::vector<std::string>& setting_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = algorithm_names();
    all.insert(all.end(), choice_names().begin(), choice_names().end());
    return all;
  }();
  return names;
}

const std::vector<std::string>& level_names() {
  static const std::vector<std::string> names = {"auto", "message", "flow", "closed_form"};
  return names;
}

template <typename Enum>
Enum parse(const char* what, const std::string& name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw std::invalid_argument("unknown " + std::string(what) + " '" + name + "'" + name_hint(name, names));
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

const char* to_string(CollectiveOp op) {
  return op == CollectiveOp::send ? kSend : op_names()[static_cast<std::size_t>(op)].c_str();
}
const char* to_string(CollectiveAlgorithm algorithm) {
  return setting_names()[static_cast<std::size_t>(algorithm)].c_str();
}
const char* to_string(CollectiveLevel level) { return level_names()[static_cast<std::size_t>(level)].c_str(); }

std::vector<std::string> collective_op_names() { return op_names(); }
std::vector<std::string> collective_algorithm_names() { return algorithm_names(); }
std::vector<std::string> collective_algorithm_choice_names() { return choice_names(); }
std::vector<std::string> collective_level_names() { return level_names(); }

CollectiveOp parse_collective_op(const std::string& name) {
  return parse<CollectiveOp>("collective operation", name, op_names());
}
CollectiveOp parse_measured_op(const std::string& name) {
  if (name == kSend) return CollectiveOp::send;
  std::vector<std::string> known = op_names();
  known.emplace_back(kSend);
  return parse<CollectiveOp>("operation", name, known);
}
CollectiveAlgorithm parse_collective_algorithm(const std::string& name) {
  return parse<CollectiveAlgorithm>("collective algorithm", name, setting_names());
}
CollectiveLevel parse_collective_level(const std::string& name) {
  return parse<CollectiveLevel>("collective level", name, level_names());
}

}  // namespace epocast
