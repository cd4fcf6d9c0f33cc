#include "sim/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace epocast {
namespace {

/// The longest start of `text` of at most `bytes` bytes that does not end inside of a character.
std::string_view start_of(std::string_view text, std::size_t bytes) {
  while (bytes > 0 && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

std::string_view end_of(std::string_view text, std::size_t bytes) {
  std::size_t from = text.size() - std::min(bytes, text.size());
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) ++from;
  return text.substr(from);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  // The second byte's limits exclude overlong forms, surrogates and code points beyond U+10FFFF.
  if (first >= 0xE0 && first <= 0xEF) {
    const bool second = tail(1) && !(first == 0xE0 && byte(1) < 0xA0) && !(first == 0xED && byte(1) > 0x9F);
    return second && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool second = tail(1) && !(first == 0xF0 && byte(1) < 0x90) && !(first == 0xF4 && byte(1) > 0x8F);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    // U+0080 to U+009F are control characters as well.
    const bool control = byte < 0x20 || byte == 0x7F || (length == 2 && byte == 0xC2 && text[1] < '\xA0');
    if (byte == '\n') {
      out += "\\n";
    } else if (length == 0 || control) {
      for (const char c : text.substr(0, std::max<std::size_t>(length, 1)))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string abridged(std::string_view text) {
  constexpr std::size_t kLongestWord = 200, kLongest = 2000;
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (word.size() > kLongestWord)
      out.append(start_of(word, 80)).append("...").append(end_of(word, 40));
    else
      out.append(word);
    text.remove_prefix(end);
    if (text.starts_with(' ')) {
      out += ' ';
      text.remove_prefix(1);
    }
  }
  if (out.size() <= kLongest) return out;
  return std::string(start_of(out, kLongest / 2)) + " ... " + std::string(end_of(out, kLongest / 4));
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

}  // namespace epocast
