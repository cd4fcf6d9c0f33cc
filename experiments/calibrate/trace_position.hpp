#pragma once
// Where an event stands in a Chrome trace, for messages: the parsed document does not know.

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

namespace epocast {

/// Line, from 1, at which the event of this index begins; 0 if there is none. `text` is valid JSON: an array of events,
/// or an object that has one under the key `list`.
int line_of_event(std::string_view text, std::size_t index, std::string_view list = "traceEvents");
/// The same of the first so many, in one go.
std::vector<int> lines_of_events(std::string_view text, std::string_view list,
                                 std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace epocast
