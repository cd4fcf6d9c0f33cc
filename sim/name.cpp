#include "sim/name.hpp"

#include <unordered_set>

namespace epocast {

const std::string* Name::keep(std::string_view text) {
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  static const std::string empty;
  if (text.empty()) return &empty;
  static std::unordered_set<std::string, Hash, std::equal_to<>> kept;  // whose elements stay where they are
  const auto known = kept.find(text);
  return &(known != kept.end() ? *known : *kept.emplace(text).first);
}

}  // namespace epocast
