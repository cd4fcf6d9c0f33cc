// Signals that come while work is done that may not come back soon.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "experiments/signal_watch.hpp"

namespace epocast::signal_watch_test {

TEST_CASE("a signal that comes during a pause is noticed after it") {
  const SignalWatch watch;
  REQUIRE(watch.file() >= 0);
  {
    const SignalWatch::Pause pause(watch);
    kill(getpid(), SIGTERM);
  }
  CHECK(watch.caught() == SIGTERM);
  CHECK(watch.caught() == 0);
}

TEST_CASE("a pause that lasts does not hold signals up") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGTERM, SIG_DFL);  // Catch2 would report a failure
    const SignalWatch watch;
    const SignalWatch::Pause pause(watch);
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::minutes(1));
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

}  // namespace epocast::signal_watch_test
