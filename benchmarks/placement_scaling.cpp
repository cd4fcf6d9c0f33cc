// How time and memory of placing grow with the graph: ParDNN on synthetic training steps of 10,000 to 1,000,000 nodes
// and 16 devices, each size in a process of its own, as processor time. Prints a CSV table and the slopes of straight
// lines through the logarithms, and draws both.
//
//   placement_scaling [FILE.svg]
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>

#include "experiments/line_plot.hpp"
#include "experiments/place/synthetic_graph.hpp"
#include "strategies/placement/pardnn.hpp"

using namespace epocast;

namespace {

constexpr int kDevices = 16;
constexpr std::size_t kSizes[] = {10'000, 20'000, 50'000, 100'000, 200'000, 500'000, 1'000'000};
constexpr std::size_t kLarge = 100'000;  // from here on the search on replays, whose work is fixed, is the smaller part

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& work) {
  const double begin = processor_seconds();
  work();
  return processor_seconds() - begin;
}

struct Outcome {
  double nodes = 0, free = 0, limited = 0, replay = 0, fits = 0;
};

Outcome place(std::size_t nodes) {
  const PlacementGraph graph = synthetic_graph(nodes, 1);
  PlacementMachine machine{kDevices, to_ticks(3.4e-6), 150e9, 0};
  const ParDnnOptions options{.replay = {.links = Links::copy_engines}};
  PlacementStage result;
  Outcome out;
  out.nodes = static_cast<double>(graph.size());
  out.free = seconds_of([&] { result = pardnn(graph, machine, options).back(); });
  out.replay = seconds_of([&] { (void)replay(graph, machine, result.placement, options.replay); });
  machine.memory = 0.8 * result.peak_bytes;
  out.limited = seconds_of([&] { result = pardnn(graph, machine, options).back(); });
  out.fits = result.fits ? 1 : 0;
  return out;
}

/// Of a process that does only this; memory in bytes.
bool measure(std::size_t nodes, Outcome& out, double& memory) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    const Outcome own = place(nodes);
    _exit(write(ends[1], &own, sizeof own) == static_cast<ssize_t>(sizeof own) ? 0 : 1);
  }
  close(ends[1]);
  const bool whole = read(ends[0], &out, sizeof out) == static_cast<ssize_t>(sizeof out);
  close(ends[0]);
  rusage usage{};
  int status = 0;
  wait4(child, &status, 0, &usage);
  memory = 1024.0 * static_cast<double>(usage.ru_maxrss);
  return whole && status == 0;
}

/// By least squares, of what lies at or beyond `from`.
double slope(const std::map<double, double>& points, double from) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [size, value] : points) {
    if (size < from) continue;
    const double lx = std::log(size), ly = std::log(value);
    n += 1, x += lx, y += ly, xx += lx * lx, xy += lx * ly;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace

int main(int argc, char** argv) {
  PlotLine free{"ParDNN [s]", {}}, limited{"with four fifths of the memory [s]", {}}, replayed{"a replay [s]", {}},
      memory{"memory [GB]", {}};
  std::puts("nodes,pardnn_s,limited_s,fits,replay_s,memory_bytes");
  for (const std::size_t nodes : kSizes) {
    Outcome out;
    double bytes = 0;
    if (!measure(nodes, out, bytes)) {
      std::fprintf(stderr, "placement_scaling: %zu nodes failed\n", nodes);
      return EXIT_FAILURE;
    }
    fmt::print("{:.0f},{:.3f},{:.3f},{:.0f},{:.4f},{:.0f}\n", out.nodes, out.free, out.limited, out.fits, out.replay,
               bytes);
    std::fflush(stdout);
    free.points[out.nodes] = out.free;
    limited.points[out.nodes] = out.limited;
    replayed.points[out.nodes] = out.replay;
    memory.points[out.nodes] = bytes / 1e9;
  }
  for (const PlotLine* line : {&free, &limited, &replayed, &memory})
    fmt::print("slope of {}: {:.2f}, from {} nodes on {:.2f}\n", line->name, slope(line->points, 0), kLarge,
               slope(line->points, 0.9 * kLarge));
  if (argc > 1) std::ofstream(argv[1]) << lines_svg({free, limited, replayed, memory}, "nodes", "s or GB", true);
  return EXIT_SUCCESS;
}
