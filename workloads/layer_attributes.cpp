#include "workloads/layer_attributes.hpp"

namespace epocast {

ConfigNode substitute(ConfigNode value, const LayerScope* scope) {
  while (value.is_scalar()) {
    const std::string text = value.as_string();
    if (text.empty() || text.front() != '$') break;
    const std::string parameter = text.substr(1);
    if (scope->use == nullptr)
      throw value.error("'" + text + "' is a block's parameter, but this layer is in no block; write a value");
    if (!scope->use->has(parameter))
      throw scope->use->error("block '" + scope->block + "' needs a value for '" + parameter + "'; add '" + parameter +
                              ": ...' here");
    value = scope->use->at(parameter);
    scope = scope->parent;
  }
  return value;
}

std::pair<std::int64_t, std::int64_t> LayerAttributes::pair(std::string_view key, Range range) const {
  const ConfigNode value = at(key);
  if (!value.is_list()) {
    const std::int64_t both = value.as_int(range);
    return {both, both};
  }
  const auto items = value.items();
  if (items.size() != 2) throw value.error("must be one number, or two: [height, width]");
  return {substitute(items[0], scope_).as_int(range), substitute(items[1], scope_).as_int(range)};
}

}  // namespace epocast
