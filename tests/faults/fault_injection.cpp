// A library to preload: makes calls of the C library fail as they do when the system runs out of something.
//   EPOCAST_FAULT="malloc 17"        from the 17th call of malloc on, in the program and its children together
//   EPOCAST_FAULT="malloc 17 once"   this call only
// for malloc (with calloc and realloc), fork, pipe (with pipe2 and socketpair), write (with writev; not to standard
// error) and pwrite.
// Calls count from main() on. EPOCAST_FAULT_COUNT names a file for how often each was called, "malloc 4711" and so on.

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
}

namespace {

enum Call { kMalloc, kFork, kPipe, kWrite, kPwrite, kCalls };
constexpr std::array kNames{"malloc", "fork", "pipe", "write", "pwrite"};

struct Shared {  // by the program and its children
  std::array<std::atomic<long>, kCalls> calls;
};

Shared* shared = nullptr;  // from main() on
int failing = -1;
long first = 0;
bool once = false;
pid_t program = 0;

bool fails(Call call) {
  if (shared == nullptr) return false;
  const long number = ++shared->calls[call];
  return call == failing && (once ? number == first : number >= first);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void begin() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) _exit(99);
  if (const char* fault = std::getenv("EPOCAST_FAULT")) {
    char name[16] = "", word[16] = "";
    if (std::sscanf(fault, "%15s %ld %15s", name, &first, word) < 2) _exit(99);
    for (int call = 0; call < kCalls; ++call)
      if (std::strcmp(name, kNames[static_cast<std::size_t>(call)]) == 0) failing = call;
    once = std::strcmp(word, "once") == 0;
  }
  program = getpid();
  shared = static_cast<Shared*>(memory);
}

__attribute__((destructor)) void report() {
  const char* const file = std::getenv("EPOCAST_FAULT_COUNT");
  if (shared == nullptr || file == nullptr || getpid() != program) return;
  const Shared* const counted = shared;
  shared = nullptr;
  std::FILE* const out = std::fopen(file, "w");
  for (std::size_t call = 0; call < kCalls; ++call)
    std::fprintf(out, "%s %ld\n", kNames[call], counted->calls[call].load());
  std::fclose(out);
}

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  begin();
  return real_main(argc, argv, environment);
}

}  // namespace

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                      void* end) {
  real_main = main;
  return next<int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*)>("__libc_start_main")(
      counted_main, argc, argv, init, fini, rtld_fini, end);
}

void* malloc(std::size_t bytes) {
  if (!fails(kMalloc)) return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}

void* calloc(std::size_t count, std::size_t bytes) {
  if (!fails(kMalloc)) return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return nullptr;
}

void* realloc(void* memory, std::size_t bytes) {
  if (!fails(kMalloc)) return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}

pid_t fork() {
  static const auto real = next<pid_t (*)()>("fork");
  if (!fails(kFork)) return real();
  errno = EAGAIN;
  return -1;
}

int pipe2(int* ends, int flags) {
  if (!fails(kPipe)) return static_cast<int>(syscall(SYS_pipe2, ends, flags));
  errno = EMFILE;
  return -1;
}

int pipe(int* ends) { return pipe2(ends, 0); }

int socketpair(int domain, int type, int protocol, int* ends) {
  if (!fails(kPipe)) return static_cast<int>(syscall(SYS_socketpair, domain, type, protocol, ends));
  errno = EMFILE;
  return -1;
}

ssize_t write(int file, const void* data, std::size_t bytes) {
  if (file == STDERR_FILENO || !fails(kWrite)) return syscall(SYS_write, file, data, bytes);
  errno = ENOSPC;
  return -1;
}

ssize_t writev(int file, const iovec* parts, int count) {
  if (file == STDERR_FILENO || !fails(kWrite)) return syscall(SYS_writev, file, parts, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite64(int file, const void* data, std::size_t bytes, off_t at) {
  if (!fails(kPwrite)) return syscall(SYS_pwrite64, file, data, bytes, at);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int file, const void* data, std::size_t bytes, off_t at) { return pwrite64(file, data, bytes, at); }
}
