#include "sim/input_record.hpp"

#include "sim/fingerprint.hpp"

namespace epocast {

InputRecord::InputRecord() : outer_(current_) { current_ = this; }

InputRecord::~InputRecord() {
  current_ = outer_;
  if (outer_ != nullptr) outer_->add(files_);
}

void InputRecord::note(const std::filesystem::path& file, const std::string& text) {
  if (current_ != nullptr)
    current_->files_[std::filesystem::absolute(file).lexically_normal().string()] = fingerprint(text);
}

}  // namespace epocast
