#include "sim/process.hpp"

#include <cxxabi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <typeinfo>
#include <utility>

namespace epocast {
namespace {

constexpr std::array kEndings{SIGINT, SIGTERM, SIGHUP};

// Read by a signal handler: lock-free, and a name that stays where it is.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);

void remove_unfinished_and_die(int signal) {
  if (const char* file = unfinished.load()) unlink(file);
  std::signal(signal, SIG_DFL);
  raise(signal);  // arrives when this handler returns
}

int (*memory_report)() = nullptr;
pid_t reporting = 0;  // process
std::terminate_handler otherwise = nullptr;

[[noreturn]] void report_and_exit() {
  const std::type_info* thrown = abi::__cxa_current_exception_type();
  if (thrown != nullptr && *thrown == typeid(std::bad_alloc) && getpid() == reporting) {
    if (const char* file = unfinished.load()) unlink(file);
    std::fflush(nullptr);  // output so far
    _exit(memory_report());
  }
  otherwise();
  std::abort();
}

}  // namespace

pid_t fork_child() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  unfinished = nullptr;  // the parent's
  sigset_t all;
  sigemptyset(&all);
  for (const int signal : kEndings) sigaddset(&all, signal);
  struct sigaction term = {};
  if (sigaction(SIGTERM, nullptr, &term) == 0 && term.sa_handler == SIG_IGN) std::signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it died before we asked
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  return 0;
}

void clean_up_on_signals() {
  for (const int signal : kEndings) {
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    std::signal(signal, remove_unfinished_and_die);
  }
}

void report_lack_of_memory_in_destructors(int (*report)()) {
  memory_report = report;
  reporting = getpid();
  if (const std::terminate_handler before = std::set_terminate(report_and_exit); before != report_and_exit)
    otherwise = before;
}

void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t it;
  sigemptyset(&it);
  sigaddset(&it, signal);
  pthread_sigmask(SIG_UNBLOCK, &it, nullptr);
  raise(signal);
  _exit(128 + signal);  // a signal that does not end processes
}

UnfinishedFile::UnfinishedFile(std::string name) : name_(std::move(name)), outer_(unfinished.exchange(name_.c_str())) {}

UnfinishedFile::~UnfinishedFile() {
  unlink(name_.c_str());
  unfinished = outer_;
}

}  // namespace epocast
