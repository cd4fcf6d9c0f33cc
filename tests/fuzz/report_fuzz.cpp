// Fuzz target: any bytes either are results that make a page, or throw ConfigError; nothing in them leaves the script
// element that they stand in.

#include <cstddef>
#include <cstdint>
#include <string>

#include "experiments/report/report_page.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::attempt;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    ReportData report;
    read_report_text(text, "fuzz", report);
    require(report_document(report, {}).find('<') == std::string::npos, "no text begins a tag");
    require(report_static(report, {}).find("<script") == std::string::npos, "no text is a script");
  });
  return 0;
}
