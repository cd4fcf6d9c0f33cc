#pragma once
// How a report heads columns, and in which unit it shows their numbers.

#include <string>
#include <vector>

#include "experiments/report/report_data.hpp"

namespace epocast {

struct ReportColumn {
  std::string name;       ///< of the row's value
  std::string title;      ///< for people, without unit
  std::string unit = {};  ///< "" for none
  double factor = 1;      ///< what is shown is the row's number divided by it
  bool numeric = false;
  bool varies = false;  ///< whether not all rows have the same

  std::string heading() const { return unit.empty() ? title : title + " [" + unit + "]"; }
};

/// The columns in which any row has something, in the order of the rows'; with `error` last if a row has one. Numbers
/// of a column share the unit that suits their median.
std::vector<ReportColumn> report_columns(const ReportData& data);

/// A row's value; null if it has none.
const nlohmann::ordered_json& report_value(const ReportRow& row, const std::string& column);

/// Four digits at least: "4.659", "35,779", "1.2e-05".
std::string report_number(double number);
/// What stands in a table's cell.
std::string report_cell(const ReportRow& row, const ReportColumn& column);

}  // namespace epocast
