#include "experiments/calibrate/trace_position.hpp"

namespace epocast {

int line_of_event(std::string_view text, std::size_t index) {
  int line = 1;
  int depth = 0;
  int events_depth = 0;  // of the values in the array of events; 0 outside it
  bool key_seen = false;
  std::size_t commas = 0;  // in that array
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '"') {
      const std::size_t start = ++i;
      for (; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
        if (i < text.size() && text[i] == '\n') ++line;
      }
      if (depth == 1 && events_depth == 0) key_seen = text.substr(start, i - start) == "traceEvents";
      continue;
    }
    if (c == '[' || c == '{') {
      if (events_depth > 0 && depth == events_depth && commas == index) return line;
      ++depth;
      if (events_depth == 0 && c == '[' && (depth == 1 || (depth == 2 && key_seen))) events_depth = depth;
    } else if (c == ']' || c == '}') {
      if (depth == events_depth && c == ']') return 0;
      --depth;
    } else if (c == ',' && events_depth > 0 && depth == events_depth) {
      ++commas;
    }
  }
  return 0;
}

}  // namespace epocast
