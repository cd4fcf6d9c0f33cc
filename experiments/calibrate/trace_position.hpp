#pragma once
// Where an event stands in a Chrome trace, for messages: the parsed document does not know.

#include <cstddef>
#include <string_view>

namespace epocast {

/// Line, from 1, at which the event of this index begins; 0 if there is none. `text` is valid JSON: an array of events,
/// or an object that has one under "traceEvents".
int line_of_event(std::string_view text, std::size_t index);

}  // namespace epocast
