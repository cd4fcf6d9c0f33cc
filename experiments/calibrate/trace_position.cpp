#include "experiments/calibrate/trace_position.hpp"

namespace epocast {

int line_of_event(std::string_view text, std::size_t index, std::string_view list) {
  const std::vector<int> lines = lines_of_events(text, list, index + 1);
  return index < lines.size() ? lines[index] : 0;
}

std::vector<int> lines_of_events(std::string_view text, std::string_view list, std::size_t most) {
  std::vector<int> lines;
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
      if (depth == 1 && events_depth == 0) key_seen = text.substr(start, i - start) == list;
      continue;
    }
    if (c == '[' || c == '{') {
      if (events_depth > 0 && depth == events_depth) {
        lines.resize(commas, 0);  // what is no object
        lines.push_back(line);
        if (lines.size() >= most) return lines;
      }
      ++depth;
      if (events_depth == 0 && c == '[' && (depth == 1 || (depth == 2 && key_seen))) events_depth = depth;
    } else if (c == ']' || c == '}') {
      if (depth == events_depth && c == ']') return lines;
      --depth;
    } else if (c == ',' && events_depth > 0 && depth == events_depth) {
      ++commas;
    }
  }
  return lines;
}

}  // namespace epocast
