#pragma once
// Which files were read, to know later whether a result is still that of these files.

#include <filesystem>
#include <map>
#include <string>

namespace epocast {

/// Notes every file that read_input_file() reads while it lives, with the fingerprint of what was in it. Of two, the
/// inner one notes first, and what it has noted is the outer one's too. For one thread.
class InputRecord {
 public:
  using Files = std::map<std::string, std::string>;  ///< absolute path, fingerprint

  InputRecord();
  ~InputRecord();
  InputRecord(const InputRecord&) = delete;
  InputRecord& operator=(const InputRecord&) = delete;

  const Files& files() const { return files_; }
  /// Notes what was read before, when it was remembered.
  void add(const Files& files) { files_.insert(files.begin(), files.end()); }

  /// For the reader of files. Costs nothing where nobody takes notes.
  static void note(const std::filesystem::path& file, const std::string& text);
  /// The innermost one; null if there is none.
  static InputRecord* current() { return current_; }

  /// While one lives, nothing is noted: files that are read again, or that follow from others.
  class Pause {
   public:
    Pause() : paused_(current_) { current_ = nullptr; }
    ~Pause() { current_ = paused_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    InputRecord* paused_;
  };

 private:
  static inline InputRecord* current_ = nullptr;
  InputRecord* outer_;
  Files files_;
};

}  // namespace epocast
