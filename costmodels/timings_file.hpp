#pragma once
// Reads measured kernel times of a network's layers on one device from a CSV file.
//
//     # device: 2x Intel Xeon Platinum 8180        (required)
//     # source: ...                                (required)
//     # precision: fp32                            (required; no other yet)
//     # threads: 56                                (optional; also date, repetitions, spread, and any number of note)
//     # other_layers: zero                         (optional: layers without parameters that have no row take no time)
//     layer,kind,batch,forward_s,backward_data_s,backward_weights_s,update_s
//     conv1_1,convolution,32,0.0217,0,0.0217,
//
// Columns may come in any order. Times are seconds for the whole batch. `kind` is as `epocast trace` prints it.
// forward_s must be positive, and backward_weights_s too for layers with weights. backward_data_s is 0 where no
// gradient is passed on. An empty update_s was not measured: it is computed from the device's memory bandwidth.

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/error.hpp"
#include "sim/model.hpp"
#include "sim/quantity.hpp"

namespace epocast {

struct TimingRow {
  std::string layer;
  LayerKind kind = LayerKind::input;
  std::int64_t batch = 0;
  Seconds forward;
  Seconds backward_data;
  Seconds backward_weights;
  std::optional<Seconds> update;
  int line = 0;  ///< in the file, for messages
};

struct TimingsFile {
  std::string file;
  std::map<std::string, std::string> header;  ///< `# key: value` lines except notes
  std::vector<TimingRow> rows;
  bool other_layers_zero = false;

  Location where(const TimingRow& row) const { return {file, row.line, 0}; }
};

/// Throws ConfigError with file and line for anything that is not as described above, and for duplicate rows.
TimingsFile load_timings(const std::filesystem::path& file);
/// The same from a stream; `name` stands for the file in messages.
TimingsFile read_timings(std::istream& in, std::string name);

}  // namespace epocast
