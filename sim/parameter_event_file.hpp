#pragma once
// Events of a log that is too long for memory: a file without a name in the system's folder for temporary files, which
// goes away with this object, however the process ends.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/parameter_event.hpp"

namespace epocast {

class ParameterEventFile {
 public:
  static constexpr std::size_t kTogether = 4096;  ///< events that are written, and are best read, at a time

  /// Throws SimulationError if there can be no such file.
  ParameterEventFile();
  ~ParameterEventFile();
  ParameterEventFile(const ParameterEventFile&) = delete;
  ParameterEventFile& operator=(const ParameterEventFile&) = delete;

  /// Throws SimulationError if there is no room.
  void add(const ParameterEvent& event);
  /// After the last one.
  void flush();

  std::size_t size() const { return size_; }
  bool has(ParameterEvent::Kind kind) const { return (kinds_ >> kind & 1) != 0; }
  /// The events from the n-th on, as many as fit. REQUIRES: flushed, and there are so many.
  void read(std::size_t n, std::span<ParameterEvent> events) const;

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string folder_;
  int file_ = -1;
  std::vector<ParameterEvent> unwritten_;
  std::size_t size_ = 0;
  std::uint32_t kinds_ = 0;
};

}  // namespace epocast
