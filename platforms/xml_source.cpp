#include "platforms/xml_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "sim/input_file.hpp"

namespace epocast {

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return "'" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
}

std::string describe(pugi::xml_node node) {
  const std::string tag = node.name();
  if (const auto id = node.attribute("id")) return tag + "[" + id.value() + "]";
  if (const auto src = node.attribute("src"))
    return tag + "[" + src.value() + "->" + node.attribute("dst").value() + "]";
  return tag;
}

std::string XmlSource::read_file(const std::filesystem::path& file) { return read_input_file(file); }

XmlSource::XmlSource(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {
  if (std::ranges::all_of(text_, [](unsigned char c) { return std::isspace(c); }))
    throw ConfigError({name_}, "", "the file is empty; expected a SimGrid platform in XML");
  if (text_.starts_with("\xEF\xBB\xBF"))
    throw ConfigError({name_, 1, 1}, "",
                      "the file starts with a byte-order mark, which SimGrid cannot read; save it without");
  if (const std::size_t nul = text_.find('\0'); nul != std::string::npos)
    throw ConfigError(locate(static_cast<std::ptrdiff_t>(nul)), "", "not a text file: it contains a zero byte");

  // In-place, and without conversion, so that every name in the document is a pointer to its place in the buffer.
  buffer_ = std::make_unique<char[]>(text_.size());
  std::memcpy(buffer_.get(), text_.data(), text_.size());
  const pugi::xml_parse_result result = document_.load_buffer_inplace(
      buffer_.get(), text_.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!result) {
    // pugixml counts the last character as the end.
    const auto rest = static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0)) + 1;
    const bool cut_off = result.status != pugi::status_no_document_element &&
                         text_.find_first_not_of(" \t\r\n", rest) == std::string::npos;
    throw ConfigError(locate(result.offset), "",
                      std::string("not well-formed XML: ") + result.description() +
                          (cut_off ? "; the file seems to be cut off" : ""));
  }
  for (const pugi::xml_node node : document_.children())
    if (node.type() == pugi::node_element && node != root())
      fail(node, "second root element; a file holds one <platform>");
  const std::size_t after = text_.find_first_not_of(" \t\r\n", text_.rfind('>') + 1);
  if (after != std::string::npos)
    throw ConfigError(locate(static_cast<std::ptrdiff_t>(after)), "", "text after the end of the document: remove it");
}

pugi::xml_node XmlSource::doctype() const {
  return document_.find_child([](pugi::xml_node node) { return node.type() == pugi::node_doctype; });
}

Location XmlSource::locate(std::ptrdiff_t offset) const {
  const std::size_t end = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
  Location where{name_, 1, 1};
  for (std::size_t i = 0; i < end; ++i) {
    const auto c = static_cast<unsigned char>(text_[i]);
    if (c == '\n') {
      ++where.line;
      where.column = 1;
    } else if ((c & 0xC0) != 0x80) {  // columns count characters: later bytes of one in UTF-8 are skipped
      ++where.column;
    }
  }
  return where;
}

Location XmlSource::locate(pugi::xml_node node) const {
  const std::ptrdiff_t offset = node.offset_debug();
  return offset < 0 ? Location{name_} : locate(offset - (node.type() == pugi::node_element ? 1 : 0));  // at the '<'
}

Location XmlSource::locate(pugi::xml_node node, pugi::xml_attribute attribute) const {
  return attribute ? locate(attribute.name() - buffer_.get()) : locate(node);
}

void XmlSource::fail(pugi::xml_node node, const std::string& problem) const {
  throw ConfigError(locate(node), describe(node), problem);
}

void XmlSource::fail(pugi::xml_node node, const char* attribute, const std::string& problem) const {
  throw ConfigError(locate(node, node.attribute(attribute)), describe(node) + "." + attribute, problem);
}

}  // namespace epocast
