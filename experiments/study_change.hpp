#pragma once
// Changes of a study that advice is made of.

#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// Another setting of a study.
struct StudyChange {
  std::string text;  ///< "memory.recompute: full"
  std::vector<std::pair<std::string, ConfigNode>> settings;
};

/// A change that was simulated, and fits into memory.
struct Remedy {
  std::string text;
  double iteration_s = 0;
};

}  // namespace epocast
