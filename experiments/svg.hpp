#pragma once
// Pictures in SVG, from the few shapes that plots and drawings need.

#include <cstddef>
#include <string>
#include <string_view>

namespace epocast {

/// The i-th of eight colours that are distinguishable also without colour vision (Okabe and Ito 2008), over and over.
const char* series_colour(std::size_t i);
/// Dashes of the i-th line, as SVG's stroke-dasharray: none for the first eight, then others for each round of colours.
const char* series_dashes(std::size_t i);

/// Throws ConfigError for the name of a file of another kind of picture.
void check_svg_name(const std::string& option, const std::string& file);

/// Text as SVG and HTML write it: none of it is markup, and control characters are blanks, line ends too unless kept.
std::string markup_text(std::string_view text, bool keep_lines = false);

/// About how wide a text is [pixels], rather too much: the reader's font is not known.
double text_width(std::string_view text, double font_size);

enum class SvgAnchor { start, middle, end };

struct SvgTextStyle {
  SvgAnchor anchor = SvgAnchor::start;
  int size = 0;          ///< of the font; 0: the picture's
  bool upwards = false;  ///< turned by 90 degrees
};

/// Coordinates are in pixels from the upper left corner. What is drawn later lies above. Any text may be given.
class SvgPicture {
 public:
  SvgPicture(double width, double height, int font_size);  ///< white

  void text(double x, double y, std::string_view text, SvgTextStyle style = {});
  void circle(double x, double y, double radius, std::string_view colour, double opacity = 1);
  /// Only its line.
  void ring(double x, double y, double radius, std::string_view colour);
  /// `path` in SVG's path language; `dashes` as stroke-dasharray.
  void path(std::string_view path, std::string_view colour, double width = 1, std::string_view dashes = "");
  /// `tip` is shown when the pointer rests on it.
  void rectangle(double x, double y, double width, double height, std::string_view colour, double opacity,
                 std::string_view tip);

  std::string document() const { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace epocast
