#include "workloads/layer_attributes.hpp"

#include <algorithm>
#include <stdexcept>

#include "workloads/integer_expression.hpp"

namespace epocast {
namespace {

// Parameters may be given by means of others, but only so far; beyond it they go round in a circle.
constexpr int kMaxSubstitutions = 100;

const LayerScope& file_scope(const LayerScope& scope) {
  const LayerScope* at = &scope;
  while (at->parent != nullptr) at = at->parent;
  return *at;
}

/// What `name` stands for in `scope`, which moves to where that was written. `where` is the place that asks.
ConfigNode find_parameter(const std::string& name, const LayerScope*& scope, const ConfigNode& where) {
  const LayerScope* here = scope;
  if (here->use != nullptr && here->use->has(name)) {
    scope = here->parent;
    return here->use->at(name);
  }
  scope = &file_scope(*here);
  if (scope->parameters != nullptr)
    if (const ConfigNode* value = scope->parameters->find(name)) return *value;
  if (here->use != nullptr)
    throw here->use->error("block '" + here->block + "' needs a value for '" + name + "'; add '" + name +
                           ": ...' here");
  const std::vector<std::string> names =
      scope->parameters != nullptr ? scope->parameters->names() : std::vector<std::string>{};
  throw where.error("'$" + name +
                    "' is neither a block's parameter, for this place is in no block, nor one of the file's" +
                    (names.empty() ? std::string("; write a value") : name_hint(name, names)));
}

std::string plain_text(const ConfigNode& value) { return value.is_scalar() ? value.as_string() : std::string(); }

std::int64_t whole_number(ConfigNode value, const LayerScope* scope, Range range, int depth);

std::int64_t known_number(const std::string& name, const LayerScope& scope, const ConfigNode& where, int depth) {
  if (const auto found = scope.known.find(name); found != scope.known.end()) return found->second;
  const LayerScope* given = &scope;
  const ConfigNode value = find_parameter(name, given, where);
  const std::int64_t number = whole_number(value, given, {}, depth + 1);
  scope.known.emplace(name, number);
  return number;
}

std::int64_t whole_number(ConfigNode value, const LayerScope* scope, Range range, int depth) {
  value = substitute(std::move(value), scope);
  const std::string text = plain_text(value);
  if (!text.starts_with("$(")) return value.as_int(range);
  if (depth > kMaxSubstitutions) throw value.error("the parameters in '" + text + "' go round in a circle");
  if (!text.ends_with(')')) throw value.error("'" + text + "' lacks the closing parenthesis");
  std::int64_t number = 0;
  try {
    number = evaluate_expression(std::string_view(text).substr(2, text.size() - 3),
                                 [&](const std::string& name) { return known_number(name, *scope, value, depth); });
  } catch (const std::invalid_argument& problem) {
    throw value.error(problem.what());
  }
  if (static_cast<double>(number) < range.min || static_cast<double>(number) > range.max)
    throw value.error("'" + text + "' is " + std::to_string(number) + ", which is too " +
                      (static_cast<double>(number) < range.min ? "small" : "large") + " here");
  return number;
}

}  // namespace

ConfigNode substitute(ConfigNode value, const LayerScope*& scope) {
  for (int count = 0;; ++count) {
    const std::string text = plain_text(value);
    if (!text.starts_with('$') || text.starts_with("$(")) return value;
    if (count > kMaxSubstitutions) throw value.error("parameter '" + text + "' stands for itself");
    value = find_parameter(text.substr(1), scope, value);
  }
}

std::int64_t whole_number(const ConfigNode& value, const LayerScope& scope, Range range) {
  return whole_number(value, &scope, range, 0);
}

std::string LayerAttributes::choice(std::string_view key, const std::vector<std::string>& choices) const {
  if (!has(key)) return choices.front();
  const std::string text = at(key).as_string();
  if (std::ranges::find(choices, text) == choices.end())
    throw at(key).error("must be one of the words known here, not '" + text + "'" + name_hint(text, choices));
  return text;
}

std::vector<std::int64_t> LayerAttributes::extents(std::string_view key, std::size_t directions, Range range) const {
  const LayerScope* scope = scope_;
  const ConfigNode value = substitute(node_.at(key), scope);
  if (!value.is_list()) return std::vector<std::int64_t>(directions, whole_number(value, *scope, range));
  const std::vector<ConfigNode> items = value.items();
  if (items.size() != directions)
    throw value.error(directions == 1   ? "must be one number"
                      : directions == 2 ? "must be one number, or two: [height, width]"
                                        : "must be one number, or three: [depth, height, width]");
  std::vector<std::int64_t> out;
  out.reserve(items.size());
  for (const ConfigNode& item : items) out.push_back(whole_number(item, *scope, range));
  return out;
}

}  // namespace epocast
