#include "workloads/model_parameters.hpp"

#include <algorithm>

namespace epocast {

std::vector<ParameterOverride> read_overrides(const ConfigNode& map, const std::vector<std::string>& except) {
  std::vector<ParameterOverride> out;
  for (const std::string& name : map.keys())
    if (std::ranges::find(except, name) == except.end()) out.emplace_back(name, map.at(name));
  return out;
}

ModelParameters::ModelParameters(const ConfigNode& root, const std::vector<ParameterOverride>& overrides) {
  if (root.has("parameters"))
    for (const auto& [name, value] : read_overrides(root.at("parameters"))) {
      if (!value.is_scalar()) throw value.error("must be a single value, such as 12");
      entries_.push_back({name, value, value});
    }
  for (const auto& [name, value] : overrides) {
    const auto entry = std::ranges::find(entries_, name, &Entry::name);
    if (entry == entries_.end())
      throw value.error("model '" + root.at("model").as_string() + "' has no parameter '" + name + "'" +
                        (entries_.empty() ? std::string("; it has none at all") : name_hint(name, names())));
    if (!value.is_scalar()) throw value.error("must be a single value, such as " + entry->declared.as_string());
    entry->value = value;
  }
}

const ConfigNode* ModelParameters::find(const std::string& name) const {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) return nullptr;
  entry->used = true;
  return &entry->value;
}

std::vector<std::string> ModelParameters::names() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) out.push_back(entry.name);
  return out;
}

void ModelParameters::check_all_used() const {
  for (const Entry& entry : entries_)
    if (!entry.used) throw entry.declared.error("parameter '" + entry.name + "' is never used; remove it");
}

}  // namespace epocast
