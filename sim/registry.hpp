#pragma once
// One table per kind of thing a user can name (strategies, cost models). Help, `epocast list`, validation and docs all
// print from it.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// Documentation and limits of one parameter.
struct ParameterInfo {
  std::string name;
  std::string unit;           ///< "", "bytes", "s", "count", ...
  std::string range;          ///< for people: "1..64", "ring | tree", "> 0"
  std::string default_value;  ///< as it would be written in YAML; "required" if there is none
  std::string description;
};

/// Name and documentation of one registered thing.
struct EntryInfo {
  std::string name;
  std::string description;
  std::vector<ParameterInfo> parameters;
  std::string preset_of = {};  ///< the entry whose settings this one is a name for; usually empty
};

/// A table from names to factories. `Product` is what a factory makes, from the options the user wrote.
template <class Product>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Product>(const ConfigNode& options)>;

  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  void add(EntryInfo info, Factory factory) { entries_.emplace_back(std::move(info), std::move(factory)); }

  /// Makes the product called `name` from `options` (a map whose key `name`, if any, is the caller's business).
  /// Throws ConfigError at `where` if there is no such name, with the nearest one as a hint.
  std::unique_ptr<Product> make(const std::string& name, const ConfigNode& options, const ConfigNode& where) const {
    for (const auto& [info, factory] : entries_)
      if (info.name == name) return factory(options);
    throw where.error("unknown " + kind_ + " '" + name + "'" + name_hint(name, names()));
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : entries_) out.push_back(entry.first.name);
    return out;
  }

  const EntryInfo* find(const std::string& name) const {
    for (const auto& entry : entries_)
      if (entry.first.name == name) return &entry.first;
    return nullptr;
  }

  std::vector<EntryInfo> infos() const {
    std::vector<EntryInfo> out;
    for (const auto& entry : entries_) out.push_back(entry.first);
    return out;
  }

 private:
  std::string kind_;
  std::vector<std::pair<EntryInfo, Factory>> entries_;
};

}  // namespace epocast
