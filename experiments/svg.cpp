#include "experiments/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "sim/error.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

/// No more digits than a tenth of a pixel.
std::string pixels(double length) { return fmt::format("{:g}", std::round(length * 10) / 10); }

std::string opacity_attribute(double opacity) {
  return opacity < 1 ? fmt::format(" fill-opacity=\"{:.3g}\"", opacity) : "";
}

}  // namespace

void check_svg_name(const std::string& option, const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  if (!ending.empty() && ending != ".svg" && ending != ".SVG")
    throw ConfigError(fmt::format("{}: pictures are SVG, not {}; name a file that ends in .svg, and convert that",
                                  option, printable(ending)));
}

std::string markup_text(std::string_view text, bool keep_lines) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out +=
          static_cast<unsigned char>(c) < ' ' && !(keep_lines && c == '\n') ? ' ' : c;  // XML has no control characters
  }
  return out;
}

const char* series_colour(std::size_t i) {
  static constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#e69f00", "#56b4e9", "#000000", "#999933"};
  return kColours[i % std::size(kColours)];
}

const char* series_dashes(std::size_t i) {
  static constexpr const char* kDashes[] = {"", "7 3", "2 2", "9 3 2 3"};
  return kDashes[i / 8 % std::size(kDashes)];
}

double text_width(std::string_view text, double font_size) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return 0.62 * font_size * static_cast<double>(characters);  // DejaVu Sans, a wide one, has 0.6 on average
}

SvgPicture::SvgPicture(double width, double height, int font_size)
    : out_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                       "font-family=\"sans-serif\" font-size=\"{2}\">\n"
                       "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                       pixels(width), pixels(height), font_size)) {}

void SvgPicture::text(double x, double y, std::string_view text, SvgTextStyle style) {
  const std::string place = style.upwards
                                ? fmt::format("transform=\"translate({} {}) rotate(-90)\"", pixels(x), pixels(y))
                                : fmt::format("x=\"{}\" y=\"{}\"", pixels(x), pixels(y));
  const char* anchor = style.anchor == SvgAnchor::middle ? " text-anchor=\"middle\""
                       : style.anchor == SvgAnchor::end  ? " text-anchor=\"end\""
                                                         : "";
  out_ += fmt::format("<text {}{}{}>{}</text>\n", place, anchor,
                      style.size > 0 ? fmt::format(" font-size=\"{}\"", style.size) : "", markup_text(text));
}

void SvgPicture::circle(double x, double y, double radius, std::string_view colour, double opacity) {
  out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"{}/>\n", pixels(x), pixels(y), pixels(radius),
                      colour, opacity_attribute(opacity));
}

void SvgPicture::ring(double x, double y, double radius, std::string_view colour) {
  out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", pixels(x), pixels(y),
                      pixels(radius), colour);
}

void SvgPicture::path(std::string_view path, std::string_view colour, double width, std::string_view dashes) {
  out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", path, colour,
                      pixels(width), dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes));
}

void SvgPicture::rectangle(double x, double y, double width, double height, std::string_view colour, double opacity,
                           std::string_view tip) {
  out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}><title>{}</title></rect>\n",
                      pixels(x), pixels(y), pixels(width), pixels(height), colour, opacity_attribute(opacity),
                      markup_text(tip));
}

}  // namespace epocast
