#pragma once
// An XML document that knows where in the file each node and attribute stands.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <pugixml.hpp>

#include "sim/error.hpp"

namespace epocast {

class XmlSource {
 public:
  /// Parses. Throws ConfigError if the text is empty or not well-formed XML with one root element.
  XmlSource(std::string text, std::string name);
  /// Throws ConfigError if the file cannot be read.
  static std::string read_file(const std::filesystem::path& file);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  pugi::xml_node root() const { return document_.document_element(); }
  pugi::xml_node doctype() const;

  Location locate(pugi::xml_node node) const;
  Location locate(pugi::xml_node node, pugi::xml_attribute attribute) const;

  /// Throw ConfigError at an element, or at an attribute of it.
  [[noreturn]] void fail(pugi::xml_node node, const std::string& problem) const;
  [[noreturn]] void fail(pugi::xml_node node, const char* attribute, const std::string& problem) const;

 private:
  Location locate(std::ptrdiff_t offset) const;

  std::string text_;
  std::string name_;
  std::unique_ptr<char[]> buffer_;  // document_ points into it
  pugi::xml_document document_;
};

/// How messages call an element: `host[skl-0]`, `route[a->b]`, or only its tag if it has no name.
std::string describe(pugi::xml_node node);

/// 'text', shortened if long.
std::string quote(std::string_view text);

}  // namespace epocast
