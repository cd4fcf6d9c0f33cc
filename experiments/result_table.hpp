#pragma once
// Results for people: the columns that are compared first, and what limits each scenario.

#include <iosfwd>
#include <vector>

#include "experiments/result.hpp"

namespace epocast {

/// How tables are written.
enum class TableStyle { aligned, markdown };

/// A table for each study, then a line for each scenario on what limits it; all that is known is in the other formats.
void write_tables(std::ostream& out, const std::vector<ScenarioResult>& results, TableStyle style);

}  // namespace epocast
