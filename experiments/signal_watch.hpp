#pragma once
// Lets a loop notice that somebody wants this process to end.

#include <csignal>

namespace epocast {

/// While one lives, SIGINT, SIGTERM and SIGHUP do not end this process; caught() tells of them. Those that are ignored
/// stay ignored. If the system has no file left to watch them with, they do what they always do.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// To poll for reading: ready when a signal has come. Negative if there is none.
  int file() const { return file_; }
  /// The signal that has come, 0 if none has.
  int caught() const;

  /// For work that may not come back soon, such as writing to a pipe that nobody reads: after a second of it, signals
  /// do what they do without a watch. Those that come before are left to caught(): nothing is lost that comes with
  /// them.
  class Pause {
   public:
    explicit Pause(const SignalWatch& watch);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    const SignalWatch& watch_;
    struct sigaction before_ = {};  ///< what SIGALRM did
  };

 private:
  sigset_t watched_, before_;
  int file_ = -1;
};

}  // namespace epocast
