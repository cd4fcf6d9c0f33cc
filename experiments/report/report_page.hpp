#pragma once
// A report as one HTML page that fetches nothing.

#include <string>

#include "experiments/report/report_question.hpp"

namespace epocast {

/// Whether this program has the script that draws interactive figures: whether npm was there when it was built.
bool has_report_script();

/// The page: with the script, its figures and tables follow the reader; the rest, the same answer, figures and tables
/// as they are, is for who reads without JavaScript, or was built without npm. `program`: its name and version.
/// Throws ConfigError if no row has values of the question's objective.
std::string report_page(const ReportData& data, const ReportQuestion& question, const std::string& program);

/// What the script reads: JSON that may stand in a script element, whatever texts are in it.
std::string report_document(const ReportData& data, const ReportQuestion& question);

/// The answer, figures and tables in HTML.
std::string report_static(const ReportData& data, const ReportQuestion& question);

}  // namespace epocast
