// Gradients that lose something on their way.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "learning/compression.hpp"
#include "learning/replay.hpp"
#include "learning/samples.hpp"
#include "tests/support/recorded_log.hpp"

namespace epocast::compression_test {

using namespace epocast::learning;

namespace {

Values drawn(std::size_t size, std::uint64_t key) {
  Values out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = normal(combine(key, i));
  return out;
}

ReplaySettings settings(const std::string& strategy, double rate, Compression compression) {
  ReplaySettings out;
  out.scheme = scheme_of(strategy);
  out.rate = [rate](const TrainingState&) { return rate; };
  out.compression = compression;
  return out;
}

/// Parameters after 40 iterations of 4 workers, and the loss there.
std::pair<Values, double> train(const std::string& strategy, const ProblemOptions& options, double rate,
                                Compression compression) {
  const ParameterLog log = testing::record({.strategy = strategy,
                                            .options = strategy == "parameter_server" ? "{mode: sync}" : "{}",
                                            .workers = 4,
                                            .iterations = 40})
                               .log;
  const auto problem = make_problem("quadratic", options, 7);
  Replay replay(*problem, settings(strategy, rate, compression));
  replay.run({&log, 1, 4, 0});
  return {replay.parameters(), problem->evaluate(replay.parameters()).loss};
}

}  // namespace

TEST_CASE("each code by hand", "[compression]") {
  Values values{3, -1, 0.5, -2}, rest(4, 0);
  Compression{Compression::top_k, 0.5}.apply(values, rest);
  CHECK(values == Values{3, 0, 0, -2});
  CHECK(rest == Values{0, -1, 0.5, 0});
  values = {0.25, -1.5, 0.25, 0};  // with the rest 0.25, -2.5, 0.75, 0
  Compression{Compression::top_k, 0.5}.apply(values, rest);
  CHECK(values == Values{0, -2.5, 0.75, 0});
  CHECK(rest == Values{0.25, 0, 0, 0});

  values = {3, -1, 1, -2};  // positive ones have a mean of 2, the others of -1.5
  rest.assign(4, 0);
  Compression{Compression::one_bit}.apply(values, rest);
  CHECK(values == Values{2, -1.5, 2, -1.5});
  CHECK(rest == Values{1, 0.5, -1, -0.5});

  values = {127, -63.4, 0.6, 0};  // steps of 1
  Compression{Compression::int8}.apply(values, rest);
  CHECK(values == Values{127, -63, 1, 0});

  // Eleven bits: 1 + 2^-10 stays, 1 + 2^-12 does not. The least number is 2^-24, the largest 65504.
  values = {1 + std::ldexp(1, -10), 1 + std::ldexp(1, -12), std::ldexp(1, -24), std::ldexp(1, -26), 1e6, -0.1};
  rest.assign(6, 0);
  Compression{Compression::fp16}.apply(values, rest);
  CHECK(values[0] == 1 + std::ldexp(1, -10));
  CHECK(values[1] == 1);
  CHECK(values[2] == std::ldexp(1, -24));
  CHECK(values[3] == 0);
  CHECK(values[4] == 65504);
  CHECK(values[5] == Approx(-0.1).epsilon(std::ldexp(1, -11)));
}

TEST_CASE("nothing is lost for ever: what has arrived and the rest are the sum of the gradients", "[compression]") {
  const Compression code = GENERATE(Compression{Compression::one_bit}, Compression{Compression::top_k, 0.1},
                                    Compression{Compression::top_k, 1e-9});
  constexpr std::size_t kSize = 57;
  Values sum(kSize, 0), arrived(kSize, 0), rest(kSize, 0);
  for (std::uint64_t step = 0; step < 20; ++step) {
    Values g = drawn(kSize, step);
    for (std::size_t i = 0; i < kSize; ++i) sum[i] += g[i];
    code.apply(g, rest);
    if (code.method == Compression::top_k) {
      const auto sent = std::count_if(g.begin(), g.end(), [](double x) { return x != 0; });
      CHECK(sent == std::ceil(code.share * kSize));
    }
    for (std::size_t i = 0; i < kSize; ++i) arrived[i] += g[i];
  }
  for (std::size_t i = 0; i < kSize; ++i) CHECK(arrived[i] + rest[i] == Approx(sum[i]).margin(1e-12));
}

TEST_CASE("a code that sends everything changes nothing", "[compression]") {
  const std::string strategy = GENERATE("data_parallel", "parameter_server");
  const ProblemOptions noisy{{{"noise", 1}}, {}};
  CHECK(train(strategy, noisy, 0.1, {Compression::top_k, 1}).first == train(strategy, noisy, 0.1, {}).first);
}

TEST_CASE("the rest makes up for what is lost, and the server gets what the others would have", "[compression]") {
  // Without noise, from 1 in each of ten directions of equal curvature: a worker that sends the largest tenth reaches
  // each parameter in every tenth step, with ten gradients at once. With rate 0.05 each step takes half of it.
  const ProblemOptions even{{{"noise", 0}}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const auto [largest, loss] = train("data_parallel", even, 0.05, {Compression::top_k, 0.1});
  CHECK(loss < 0.05 * 5);  // of 10 x 1 / 2
  const Values served = train("parameter_server", even, 0.05, {Compression::top_k, 0.1}).first;
  for (std::size_t i = 0; i < served.size(); ++i) CHECK(served[i] == Approx(largest[i]).margin(1e-12));
  // Half precision is as good as none where eleven bits are enough.
  const auto [rounded, ignored] = train("data_parallel", even, 0.05, {Compression::fp16});
  for (std::size_t i = 0; i < rounded.size(); ++i) CHECK(rounded[i] == Approx(std::pow(0.95, 40)).epsilon(0.01));
}

}  // namespace epocast::compression_test
