#pragma once
// What a report is made of: rows of results, timelines and memory, from files that other commands wrote.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/store/result_store.hpp"

namespace epocast {

/// A study that some rows belong to.
struct ReportStudy {
  std::string name;
  std::string source;                  ///< the file
  std::vector<std::string> axes = {};  ///< names of columns
  std::optional<StoredRun> run = {};
  std::map<std::string, std::string> inputs = {};  ///< files that were read for it, and their fingerprints
};

/// A scenario's result, by the names of columns: null, numbers, truth values, texts and lists of texts.
struct ReportRow {
  std::size_t study = 0;
  nlohmann::ordered_json values;
  std::string error = {};  ///< why there is no result
};

/// What `run --trace` wrote, with each text once.
struct ReportTimeline {
  struct Lane {
    std::string device, name;
  };
  struct Slice {
    std::size_t lane = 0, name = 0;
    std::int64_t start = 0, duration = 0;  ///< ns
  };
  std::string title;
  std::vector<std::string> notes = {};
  std::vector<Lane> lanes = {};
  std::vector<std::pair<std::string, std::string>> names =
      {};                          ///< of tasks, and what they are: compute, communication, ..
  std::vector<Slice> slices = {};  ///< in order of their start
};

/// What `trace --memory` wrote: bytes by purpose during each pass.
struct ReportPasses {
  std::string title;
  std::vector<std::string> passes = {};
  std::vector<std::pair<std::string, std::vector<double>>> parts = {};
};

/// Of what `run --details` wrote, one phase.
struct ReportDetails {
  std::string title;
  nlohmann::ordered_json memory;        ///< a list, see docs/output.md
  nlohmann::ordered_json traffic = {};  ///< a map, see docs/output.md; null if there was none
};

struct ReportData {
  std::vector<ReportStudy> studies;
  std::vector<ReportRow> rows;
  std::string currency;  ///< of costs; "" if unknown
  std::vector<ReportTimeline> timelines;
  std::vector<ReportPasses> passes;
  std::vector<ReportDetails> details;
  std::vector<std::string> no_currency = {};  ///< files with costs that do not say in what
  bool costs_apart = false;  ///< costs may be in several currencies: each file has a column for its own
};

/// Reads stores, results in CSV, JSON and JSON lines, and files of `run --trace`, `run --details` and `trace --memory`,
/// told apart by what is in them. Throws ConfigError with the file, and the line where there is one, for what is none
/// of these or holds nothing.
ReportData read_report_data(const std::vector<std::filesystem::path>& files);

/// Adds what a file with this text holds, if it is no store.
void read_report_text(const std::string& text, const std::string& file, ReportData& data);

/// A document in the Trace Event Format. Throws ConfigError for what it cannot be. REQUIRES: a member `traceEvents`.
ReportTimeline read_timeline(const nlohmann::ordered_json& document, const std::string& file);

}  // namespace epocast
