#include "experiments/report/page_assets.hpp"

// The assembler takes the files as they are: half a megabyte of script as a text in C++ would be compiled for seconds.
#define EPOCAST_EMBED(name, file)                                                                         \
  asm(".pushsection .rodata\n.globl epocast_report_" #name "\nepocast_report_" #name ":\n.incbin \"" file \
      "\"\n.globl epocast_report_" #name "_end\nepocast_report_" #name "_end:\n.byte 0\n.popsection\n");  \
  extern "C" const char epocast_report_##name[], epocast_report_##name##_end[]

EPOCAST_EMBED(template, EPOCAST_REPORT_PAGE "/index.html");
EPOCAST_EMBED(style, EPOCAST_REPORT_PAGE "/style.css");
EPOCAST_EMBED(script, EPOCAST_REPORT_SCRIPT);

namespace epocast {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view report_template() { return between(epocast_report_template, epocast_report_template_end); }
std::string_view report_style() { return between(epocast_report_style, epocast_report_style_end); }
std::string_view report_script() { return between(epocast_report_script, epocast_report_script_end); }

}  // namespace epocast
