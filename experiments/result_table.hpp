#pragma once
// Results for people: the columns that are compared first, and what limits each scenario.

#include <cstddef>
#include <iosfwd>
#include <vector>

#include "experiments/result.hpp"

namespace epocast {

/// How tables are written.
enum class TableStyle { aligned, markdown };

/// A table for each study, then a line for each scenario on what limits it; all that is known is in the other formats.
/// Aligned ones leave out columns that are compared less often, and break lines, where a line has no more than `width`
/// characters; 0: it has as many as are needed.
void write_tables(std::ostream& out, const std::vector<ScenarioResult>& results, TableStyle style,
                  std::size_t width = 0);

}  // namespace epocast
