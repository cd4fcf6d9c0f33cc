#pragma once
// Numbers as SimGrid writes them: "8.24Tf", "1.25GBps", "100Gbps", "15us". Without a space, and not the spelling of
// sim/quantity.hpp.

#include <string_view>

#include "sim/quantity.hpp"

namespace epocast {

/// Each throws std::invalid_argument, with a remedy, if the text is no such number, has no unit (0 may go without), or
/// is beyond reason.
FlopPerSecond parse_simgrid_speed(std::string_view text);       ///< 1 kf to 1 Ef
BytesPerSecond parse_simgrid_bandwidth(std::string_view text);  ///< 1 Bps to 1 PBps
Seconds parse_simgrid_latency(std::string_view text);           ///< 0 to 10 s

}  // namespace epocast
