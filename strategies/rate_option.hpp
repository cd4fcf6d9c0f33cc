#pragma once
// Options that are a rate at which something is done beside computing, such as copying messages.

#include "sim/config.hpp"

namespace epocast {

/// Seconds per byte of an optional rate; 0, infinitely fast, without it. Throws ConfigError for anything else.
inline double seconds_per_byte(const ConfigNode& options, const char* key) {
  return options.has(key) ? 1 / options.at(key).as_bytes_per_second(Range{1, 1e300}).value : 0;
}

}  // namespace epocast
