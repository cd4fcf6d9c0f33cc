#include "experiments/signal_watch.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <ctime>
#include <initializer_list>

namespace epocast {

SignalWatch::SignalWatch() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
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

int SignalWatch::caught() const {
  if (file_ < 0) return 0;
  const timespec none{0, 0};
  const int signal = sigtimedwait(&watched_, nullptr, &none);
  return signal > 0 ? signal : 0;
}

}  // namespace epocast
