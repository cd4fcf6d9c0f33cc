#pragma once
// Changes of a study that advice is made of.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// Another setting of a study.
struct StudyChange {
  std::string text;  ///< "memory.recompute: full"
  std::vector<std::pair<std::string, ConfigNode>> settings;
  std::vector<std::size_t> milder = {};  ///< changes before it that do less of the same, and so take less time: it is
                                         ///< of use only where none of them fits
};

/// A change that was simulated, and fits into memory.
struct Remedy {
  std::string text;
  double iteration_s = 0;
};

}  // namespace epocast
