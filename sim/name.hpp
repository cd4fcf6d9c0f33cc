#pragma once
// What very many things are called by few words.

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace epocast {

/// A word that is kept once, as long as the process lives: a copy is a pointer, and equal words have equal pointers.
class Name {
 public:
  Name() : kept_(keep("")) {}
  /// Implicit, as a text is a name.
  template <std::convertible_to<std::string_view> Text>
  Name(const Text& text) : kept_(keep(text)) {}  // NOLINT(google-explicit-constructor)

  const std::string& text() const { return *kept_; }
  operator const std::string&() const { return *kept_; }  // NOLINT(google-explicit-constructor)
  bool empty() const { return kept_->empty(); }

  friend bool operator==(Name a, Name b) { return a.kept_ == b.kept_; }
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(Name a, const Text& b) {
    return std::string_view(*a.kept_) == std::string_view(b);
  }
  /// Of texts.
  friend std::string operator+(Name a, std::string_view b) { return std::string(*a.kept_).append(b); }
  friend std::string operator+(std::string_view a, Name b) { return std::string(a).append(*b.kept_); }

 private:
  static const std::string* keep(std::string_view text);

  const std::string* kept_;
};

}  // namespace epocast

template <>
struct fmt::formatter<epocast::Name> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(epocast::Name name, Context& context) const {
    return fmt::formatter<std::string_view>::format(name.text(), context);
  }
};
