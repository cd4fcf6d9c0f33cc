#pragma once
// Results as a table, as Markdown, CSV, JSON or JSON lines.

#include <iosfwd>
#include <string>
#include <vector>

#include "experiments/result.hpp"

namespace epocast {

enum class OutputFormat { table, markdown, csv, json, jsonl };

std::vector<std::string> output_format_names();
/// Throws ConfigError with the nearest name.
OutputFormat parse_output_format(const std::string& name);

/// Writes the results of one or more studies: these columns; all if none are given, but of tables the usual ones. CSV
/// of studies with different axes has the union of their columns.
void write_results(std::ostream& out, const std::vector<ScenarioResult>& results, OutputFormat format,
                   const std::vector<std::string>& columns = {});
/// Names of columns, or of their heads in tables ("samples/s"), divided by commas, of results whose studies have these
/// axes; `keys` are taken, too. Throws ConfigError with the nearest name.
std::vector<std::string> chosen_columns(const std::string& text, const std::vector<std::string>& axes,
                                        const std::vector<std::string>& keys = {});

// The same row by row.

/// Adds a name to a list that lacks it.
void add_name(std::vector<std::string>& names, const std::string& name);
/// The sweep axes of results, each once.
std::vector<std::string> axis_names(const std::vector<ScenarioResult>& results);
/// Columns of results whose studies have these axes: study, scenario, axes, then the rest, each once.
std::vector<std::string> result_columns(const std::vector<std::string>& axes);
void write_csv_head(std::ostream& out, const std::vector<std::string>& columns);
void write_csv_row(std::ostream& out, const std::vector<std::string>& columns, const ScenarioResult& result);
/// No columns: all.
void write_json_line(std::ostream& out, const std::vector<std::string>& columns, const ScenarioResult& result);

/// What `run --details` writes: a list with study, scenario and ScenarioResult::details of each result that has any.
void write_details(std::ostream& out, const std::vector<ScenarioResult>& results);

/// A field of a CSV file, quoted if it has to be (RFC 4180).
std::string csv_field(const std::string& text);

}  // namespace epocast
