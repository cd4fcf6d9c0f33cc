#pragma once
// Remembers what was made of files, in processes that read many studies which name the same ones.

#include <filesystem>
#include <map>
#include <string>

#include "sim/config.hpp"
#include "sim/input_record.hpp"

namespace epocast {

/// Whether memos remember. Off by default: whoever turns it on knows that no file changes while the process lives.
inline bool remember_inputs = false;

/// What was made of values that read the same and stand in the same folder.
template <class T>
class InputMemo {
 public:
  /// What `load` made of `value` the first time. Mistakes are not remembered.
  template <class Load>
  T get(const ConfigNode& value, Load load) {
    if (!remember_inputs) return load();
    const std::string key = std::filesystem::path(value.where().file).parent_path().string() + '\n' + value.flow_text();
    if (const auto known = made_.find(key); known != made_.end()) {
      value.mark_all_read();
      if (InputRecord* const record = InputRecord::current()) record->add(known->second.files);
      return known->second.value;
    }
    const InputRecord record;
    T made = load();
    made_.emplace(key, Entry{made, record.files()});
    return made;
  }

 private:
  struct Entry {
    T value;
    InputRecord::Files files;
  };
  std::map<std::string, Entry> made_;
};

}  // namespace epocast
