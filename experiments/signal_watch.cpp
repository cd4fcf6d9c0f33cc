#include "experiments/signal_watch.hpp"

#include <sys/signalfd.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <ctime>

namespace epocast {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// Of the program that was stopped for this: it goes on without blocking them.
void let_signals_through(int, siginfo_t*, void* context) {
  for (const int signal : kSignals) sigdelset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal);
}

void set_timer(int seconds) {
  const itimerval once{{}, {seconds, 0}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

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

SignalWatch::Pause::Pause(const SignalWatch& watch) : watch_(watch) {
  if (watch_.file_ < 0) return;
  struct sigaction action = {};
  action.sa_sigaction = let_signals_through;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGALRM, &action, &before_);
  set_timer(1);
}

SignalWatch::Pause::~Pause() {
  if (watch_.file_ < 0) return;
  set_timer(0);
  sigaction(SIGALRM, &before_, nullptr);
  pthread_sigmask(SIG_BLOCK, &watch_.watched_, nullptr);
}

int SignalWatch::caught() const {
  if (file_ < 0) return 0;
  const timespec none{0, 0};
  const int signal = sigtimedwait(&watched_, nullptr, &none);
  return signal > 0 ? signal : 0;
}

}  // namespace epocast
