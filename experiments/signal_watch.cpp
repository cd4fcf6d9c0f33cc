#include "experiments/signal_watch.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <ctime>

namespace epocast {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

SignalWatch::SignalWatch() {
  sigemptyset(&watched_);
  for (const int signal : kSignals) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&watched_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  file_ = signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (file_ < 0) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

SignalWatch::~SignalWatch() {
  if (file_ < 0) return;
  close(file_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool SignalWatch::pending() const {
  sigset_t come;
  if (sigpending(&come) != 0) return false;
  for (const int signal : kSignals)
    if (sigismember(&come, signal) == 1 && sigismember(&watched_, signal) == 1) return true;
  return false;
}

int SignalWatch::caught() const {
  if (file_ < 0) return 0;
  const timespec none{0, 0};
  const int signal = sigtimedwait(&watched_, nullptr, &none);
  return signal > 0 ? signal : 0;
}

}  // namespace epocast
