#include "experiments/report/report_page.hpp"

#include <fmt/format.h>

#include "experiments/report/page_assets.hpp"
#include "experiments/svg.hpp"

namespace epocast {
namespace {

/// What the page is about.
std::string report_title(const ReportData& data) {
  std::string title;
  for (const ReportStudy& study : data.studies)
    if (title.find(study.name) == std::string::npos) title += (title.empty() ? "" : ", ") + study.name;
  for (const ReportTimeline& timeline : data.timelines)
    if (data.studies.empty()) title += (title.empty() ? "" : ", ") + timeline.title;
  constexpr std::size_t kLongest = 120;
  if (title.empty()) return "epocast";
  return title.size() <= kLongest ? title : fmt::format("{} studies", data.studies.size());
}

/// The text with `{{name}}` replaced. What is put in is not looked at again.
std::string filled(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{"), close = text.find("}}", open);
    out += text.substr(0, open);
    if (close == std::string_view::npos) return out;
    const std::string_view name = text.substr(open + 2, close - open - 2);
    for (const auto& [key, value] : values)
      if (key == name) out += value;
    text.remove_prefix(close + 2);
  }
}

}  // namespace

bool has_report_script() { return !report_script().empty(); }

std::string report_page(const ReportData& data, const ReportQuestion& question, const std::string& program) {
  std::string content = report_static(data, question), scripts;
  if (has_report_script()) {
    content = "<noscript>\n" + content + "</noscript>\n";
    scripts = "<script type=\"application/json\" id=\"data\">" + report_document(data, question) +
              "</script>\n<script>\n" + std::string(report_script()) + "</script>\n";
  }
  return filled(report_template(), {{"title", markup_text(report_title(data))},
                                    {"style", std::string(report_style())},
                                    {"content", content},
                                    {"program", markup_text(program)},
                                    {"scripts", scripts}});
}

}  // namespace epocast
