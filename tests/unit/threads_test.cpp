// epocast has no threads: forking in the middle of a program that has some copies locks that nobody will open.

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/simgrid/engine.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::threads_test {

using namespace epocast::testing;
namespace fs = std::filesystem;

namespace {

std::ptrdiff_t threads_of_this_process() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

/// Looks how many threads there are whenever something happens.
struct ThreadCounter : SimEngine::Listener {
  void look() {
    ++events;
    most = std::max(most, threads_of_this_process());
  }
  void on_timer(std::uint64_t) override { look(); }
  void on_flow_done(std::uint64_t) override { look(); }
  int events = 0;
  std::ptrdiff_t most = 0;
};

}  // namespace

TEST_CASE("a simulation has one thread") {
  const std::string counted = in_child([] {
    const Star star(4, 1e9, 1e-6);
    SimEngine engine(star.cluster());
    ThreadCounter counter;
    engine.set_listener(counter);
    for (int i = 0; i < 4; ++i) {
      engine.start_flow(i, (i + 1) % 4, 1e6, static_cast<std::uint64_t>(i));
      engine.start_timer(1e-4 * i, static_cast<std::uint64_t>(i));
    }
    engine.run();
    return fmt::format("{} events, {} thread", counter.events, counter.most);
  });
  CHECK(counted == "8 events, 1 thread");
}

TEST_CASE("nothing makes a thread, and nothing changes its own priority") {
  // Only kernels are timed in parallel, by a program of their own.
  for (const char* folder : {"sim", "platforms", "workloads", "costmodels", "strategies", "experiments"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(EPOCAST_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      std::vector<std::string> forbidden{"setpriority(", "nice(", "sched_setscheduler("};
      if (entry.path().parent_path().filename() != "microbench")
        for (const char* maker : {"std::thread", "std::jthread", "std::async", "pthread_create", "#pragma omp"})
          forbidden.emplace_back(maker);
      for (const std::string& word : forbidden) {
        INFO(entry.path().string() << " contains " << word);
        CHECK(text.find(word) == std::string::npos);
      }
    }
}

}  // namespace epocast::threads_test
