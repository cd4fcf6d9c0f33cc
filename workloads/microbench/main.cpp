// epocast_microbench: times the kernels of training steps on this machine. `epocast calibrate compute` runs it; it is a
// program of its own so that epocast itself starts without oneDNN.

#include <fmt/format.h>
#include <omp.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <csignal>
#include <iostream>
#include <string_view>

#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "workloads/microbench/kernel_timer.hpp"
#include "workloads/microbench/machine.hpp"
#include "workloads/microbench/stopwatch.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

constexpr double kRateShare = 0.02;  // of the budget, for each of the machine's rates
constexpr double kPatience = 1.03;   // times the budget

struct Arguments {
  std::vector<std::string> models;
  std::vector<std::int64_t> batches;
  int threads = 0;
  std::string optimizer = "sgd";
  bool steps = false;
  bool rates = true;
  TimingRule rule;
  double budget = 600;  // [s]
};

/// One changing line on a terminal; nothing elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)), begin_(Stopwatch::now()) {}
  void show(double share) {
    if (::isatty(STDERR_FILENO) == 0) return;
    const double elapsed = Stopwatch::now() - begin_;
    if (share >= 1) {
      fmt::print(stderr, "\r\033[K");
    } else if (elapsed - shown_ > 0.2) {
      fmt::print(stderr, "\r\033[K{}: {:.0f} %, {:.0f} s left", what_, 100 * share, elapsed * (1 - share) / share);
      shown_ = elapsed;
    }
    std::fflush(stderr);
  }

 private:
  std::string what_;
  double begin_;
  double shown_ = 0;
};

void print_rows(const ExecutedStep& step, const std::string& spec, const TimedStep& timed) {
  const auto row = [&](const std::string& layer, const char* pass, int kernel, const Sample& sample,
                       const Sample* in_step) {
    fmt::print("\"{}\",{},\"{}\",{},{},{},{:.7g},{:.7g},{:.3g},{}\n", spec, step.batch(), layer, pass, kernel,
               sample.times.size(), sample.median(), sample.fastest(), sample.spread(),
               in_step != nullptr && !in_step->times.empty() ? fmt::format("{:.7g}", in_step->median()) : "");
  };
  for (std::size_t i = 0; i < step.kernels().size(); ++i) {
    const Kernel& kernel = step.kernels()[i];
    const Layer& layer = step.model().layers[static_cast<std::size_t>(kernel.layer())];
    const auto distinct = static_cast<std::size_t>(timed.distinct[i]);
    row(layer.name, to_string(kernel.pass()), timed.distinct[i], timed.kernels[distinct], &timed.in_step[i]);
  }
  if (!timed.step.times.empty()) {
    row("", "step", -1, timed.step, nullptr);
    const double waited = timed.step_waited / static_cast<double>(timed.step.times.size());
    if (waited > 0.05 && omp_get_max_threads() > 1)
      fmt::print(
          stderr,
          "warning: threads waited for a CPU in {:.0f} % of the steps' time; other programs are running, and with "
          "several threads their share cannot be told exactly: use --threads 1\n",
          100 * waited);
  }
  std::fflush(stdout);
}

/// What a step costs, for sharing out time.
double weight(const Model& model, std::int64_t batch) {
  double flop = 0;
  for (const Layer& layer : model.layers)
    flop += layer.forward_flop + layer.backward_data_flop + layer.backward_weights_flop;
  return static_cast<double>(batch) * flop;
}

/// Ends this program a little after its time: planning a large step cannot be interrupted otherwise.
void end_after(double seconds) {
  std::signal(SIGALRM, [](int) {
    constexpr std::string_view kText =
        "--budget: time is up before every kernel was timed; give more time, a smaller batch, or fewer models\n";
    (void)!::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(2);
  });
  const double whole = std::floor(seconds);
  const itimerval timer{{0, 0}, {static_cast<time_t>(whole), static_cast<suseconds_t>(1e6 * (seconds - whole))}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void measure(const Arguments& arguments) {
  end_after(kPatience * arguments.budget);
  const double stop_at = Stopwatch::now() + arguments.budget;
  std::vector<int> cpus = usable_cpus();
  if (arguments.threads > static_cast<int>(cpus.size()))
    throw ConfigError(fmt::format("--threads: {} is more than the {} CPUs that this process may use", arguments.threads,
                                  cpus.size()));
  if (arguments.threads > 0) cpus.resize(static_cast<std::size_t>(arguments.threads));
  // All models are read before any is timed.
  std::vector<Model> models;
  for (const std::string& text : arguments.models)
    models.push_back(load_model_named(ConfigNode::load_text(text, "--model"), data_directory()));
  pin_threads(cpus);
  const std::size_t cache = last_level_cache();
  fmt::print("# device: {}, {} core{}\n# library: {}\n# date: {}\n# threads: {}\n", cpu_name(), cpus.size(),
             cpus.size() == 1 ? "" : "s", onednn_name(), today(), cpus.size());
  if (arguments.rates)
    fmt::print("# peak_rate: {:.6g} GFLOP/s\n# memory_bandwidth: {:.6g} GB/s\n# units: {}\n",
               measure_peak_rate(kRateShare * arguments.budget).value / 1e9,
               measure_memory_bandwidth(cache, kRateShare * arguments.budget).value / 1e9, cpus.size());
  fmt::print("model,batch,layer,pass,kernel,repetitions,time_s,fastest_s,spread,in_step_s\n");
  double left = 0;
  for (const Model& model : models)
    for (const std::int64_t batch : arguments.batches) left += weight(model, batch);
  for (std::size_t m = 0; m < models.size(); ++m)
    for (const std::int64_t batch : arguments.batches) {
      // A step that needs less than its share leaves the rest to those after it.
      TimingRule rule = arguments.rule;
      const double now = Stopwatch::now();
      rule.stop_at = stop_at;
      rule.enough_at = left > 0 ? now + (stop_at - now) * weight(models[m], batch) / left : stop_at;
      left -= weight(models[m], batch);
      ExecutedStep step(models[m], batch, parse_optimizer(arguments.optimizer));
      ProgressLine line(fmt::format("{}, batch {}", models[m].name, batch));
      const TimedStep timed = time_step(step, cache, rule, arguments.steps, [&](double share) { line.show(share); });
      for (const std::string& what : step.left_out())
        fmt::print(stderr, "left out: {} of {}: there is no kernel for it here\n", what, models[m].name);
      print_rows(step, arguments.models[m], timed);
    }
  ::alarm(0);
}

int run(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends with the epocast that started it
  Arguments arguments;
  CLI::App app("Times the kernels of training steps on this machine. `epocast calibrate compute` runs this program.");
  app.add_option("--model", arguments.models, "name, file, or '{name: resnet50, image: 64}'; may be repeated")
      ->required()
      ->allow_extra_args(false);
  app.add_option("--batch", arguments.batches, "samples; may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", arguments.threads, "default: all CPUs that this process may use")
      ->check(CLI::Range(1, 4096));
  app.add_option("--optimizer", arguments.optimizer, "")->check(CLI::IsMember({"sgd", "momentum", "adam"}));
  app.add_flag("--steps", arguments.steps, "execute whole steps too");
  app.add_flag("!--no-rates", arguments.rates, "leave out the machine's peak rate and memory bandwidth");
  app.add_option("--least", arguments.rule.least, "repetitions of each kernel")->check(CLI::Range(1, 10000));
  app.add_option("--most", arguments.rule.most, "repetitions of each kernel")->check(CLI::Range(1, 10000));
  app.add_option("--budget", arguments.budget, "seconds for all of it")->check(CLI::Range(0.1, 1e9));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    measure(arguments);
    return 0;
  } catch (const ConfigError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "there is too little memory for this; use a smaller batch\n");
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "internal error: {}\n", error.what());
    return 3;
  }
}

}  // namespace
}  // namespace epocast

int main(int argc, char** argv) { return epocast::run(argc, argv); }
