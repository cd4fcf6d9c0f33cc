// The engine goes on without SimGrid while that has no flow, and hands over when one starts: no event is lost or comes
// twice, and none at another date.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "sim/simgrid/engine.hpp"
#include "tests/property/random_network.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::engine_clock_test {

namespace {

constexpr double kBandwidth = 1e9;  // B/s

/// Starts timers and flows that never meet, and notes what is due when. The date of each is known when it starts: a
/// flow of b bytes that is alone on its links takes b / bandwidth.
class Program : public SimEngine::Listener {
 public:
  Program(SimEngine& engine, std::uint64_t seed, int events) : engine_(engine), random_(seed), left_(events) {
    engine.set_listener(*this);
  }

  void begin() {
    for (int chain = 0; chain < 3; ++chain) start(chain);
  }

  void on_timer(std::uint64_t token) override { happened(token); }
  void on_flow_done(std::uint64_t token) override { happened(token); }

  std::string problems() const { return due_.empty() ? problems_ : problems_ + " some never happened;"; }

 private:
  struct Due {
    double date;
    int chain;
  };

  /// The next event of a chain; those of chain c have the links between hosts 2 c and 2 c + 1 to themselves.
  void start(int chain) {
    if (left_ == 0) return;
    --left_;
    const std::uint64_t token = next_++;
    // From microseconds to hours, so that adding to the clock rounds in every way; sometimes no time at all.
    const double time = random_() % 8 == 0 ? 0 : std::exp(std::uniform_real_distribution(-14.0, 8.0)(random_));
    if (random_() % 3 == 0) {
      const double bytes = std::round(std::min(time, 50.0) * kBandwidth);
      due_.emplace(token, Due{engine_.now() + bytes / kBandwidth, chain});
      engine_.start_flow(2 * chain, 2 * chain + 1, bytes, token);
    } else {
      due_.emplace(token, Due{engine_.now() + time, chain});
      engine_.start_timer(engine_.now() + time, token);
    }
  }

  void happened(std::uint64_t token) {
    const double now = engine_.now();
    const auto due = due_.find(token);
    if (due == due_.end()) throw std::runtime_error("event " + std::to_string(token) + " happened twice");
    if (now < last_) problems_ += " the clock went back;";
    if (std::abs(now - due->second.date) > 2 * SimEngine::tolerance(now))
      problems_ += " event " + std::to_string(token) + " is " + std::to_string(now - due->second.date) + " s off;";
    last_ = now;
    const int chain = due->second.chain;
    due_.erase(due);
    start(chain);
  }

  SimEngine& engine_;
  std::mt19937_64 random_;
  int left_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Due> due_;  // by token
  double last_ = 0;
  std::string problems_;
};

}  // namespace

TEST_CASE("every event happens once and at its date, with and without flows at SimGrid", "[engine]") {
  const testing::Star star(6, kBandwidth, 0);
  std::string hosts = R"(<router id="switch"/>)", links, ways;
  for (int h = 0; h < 6; ++h) {
    hosts += fmt::format(R"(<host id="d{}" speed="1Tf"/>)", h);
    links += fmt::format(R"(<link id="l{}" bandwidth="1GBps" latency="0s" sharing_policy="SPLITDUPLEX"/>)", h);
    ways += fmt::format(R"(<route src="d{0}" dst="switch"><link_ctn id="l{0}" direction="UP"/></route>)", h);
  }
  const testing::TemporaryPlatform known(testing::network_xml(hosts, links, ways));  // where SimGrid comes late
  REQUIRE(known.cluster().network != nullptr);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    CHECK(testing::in_child([&] {
            SimEngine engine(seed % 2 == 0 ? star.cluster() : known.cluster());
            std::string problems;
            for (int run = 0; run < 3; ++run) {  // the clock goes on where the last one ended
              Program program(engine, 3 * seed + static_cast<std::uint64_t>(run), 300);
              program.begin();
              engine.run();
              problems += program.problems();
            }
            return problems;
          }).empty());
  }
}

TEST_CASE("an engine that runs refuses to run something else meanwhile", "[engine]") {
  struct Nested final : SimEngine::Listener {
    explicit Nested(SimEngine& of) : engine(of) { engine.set_listener(*this); }
    void on_timer(std::uint64_t) override {
      running = engine.is_running();
      engine.run();
    }
    void on_flow_done(std::uint64_t) override {}
    SimEngine& engine;
    bool running = false;
  };
  const testing::Star star(2, kBandwidth, 0);
  CHECK(testing::in_child([&] {
          SimEngine engine(star.cluster());
          Nested nested(engine);
          engine.start_timer(1, 0);
          try {
            engine.run();
          } catch (const std::logic_error&) {
            return std::string(nested.running && !engine.is_running() ? "refused" : "running still");
          }
          return std::string("ran");
        }) == "refused");
}

}  // namespace epocast::engine_clock_test
