#include "workloads/microbench/machine.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "workloads/microbench/buffer.hpp"
#include "workloads/microbench/executed_step.hpp"
#include "workloads/microbench/stopwatch.hpp"

namespace epocast {
namespace {

/// The shortest time of those runs that begin within `seconds`, at least 1 and at most 12.
template <class Run>
double fastest(double seconds, const Run& run) {
  const double end = Stopwatch::now() + seconds;
  double best = 1e9;
  for (int i = 0; i == 0 || (i < 12 && Stopwatch::now() < end); ++i) {
    const double begin = Stopwatch::now();
    run();
    best = std::min(best, Stopwatch::now() - begin);
  }
  return best;
}

}  // namespace

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void pin_threads(const std::vector<int>& cpus) {
  omp_set_dynamic(0);
  omp_set_num_threads(static_cast<int>(cpus.size()));
  bool refused = false;
#pragma omp parallel reduction(|| : refused)
  {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[static_cast<std::size_t>(omp_get_thread_num())], &set);
    refused = ::sched_setaffinity(0, sizeof set, &set) != 0;
  }
  if (refused) throw std::runtime_error("the system does not let threads be bound to CPUs");
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line))
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "CPU";
}

std::string onednn_name() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

std::size_t last_level_cache() {
  std::size_t best = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream in(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::size_t kibibytes = 0;
    if (in >> kibibytes) best = std::max(best, kibibytes * 1024);
  }
  return best > 0 ? best : 32U << 20U;
}

std::string today() {
  const std::time_t time = std::time(nullptr);
  std::tm calendar{};
  ::gmtime_r(&time, &calendar);
  return fmt::format("{:04}-{:02}-{:02}", calendar.tm_year + 1900, calendar.tm_mon + 1, calendar.tm_mday);
}

FlopPerSecond measure_peak_rate(double seconds) {
  constexpr std::int64_t kSide = 2048;
  const dnnl::memory::desc desc({kSide, kSide}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
  Buffer a(desc.get_size(), uniform_values(1)), b(desc.get_size(), uniform_values(1)), c(desc.get_size(), {});
  const dnnl::matmul product(dnnl::matmul::primitive_desc({desc, desc, desc}, cpu_engine()));
  dnnl::stream stream(cpu_engine());
  for (Buffer* buffer : {&a, &b, &c}) buffer->allocate();
  const std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, a.view(desc, cpu_engine())},
                                                        {DNNL_ARG_WEIGHTS, b.view(desc, cpu_engine())},
                                                        {DNNL_ARG_DST, c.view(desc, cpu_engine())}};
  const double time = fastest(seconds, [&] { product.execute(stream, arguments); });
  return FlopPerSecond(2.0 * kSide * kSide * kSide / time);
}

BytesPerSecond measure_memory_bandwidth(std::size_t cache, double seconds) {
  const std::size_t bytes = std::max<std::size_t>(64U << 20U, 2 * cache);
  Buffer a(bytes, {}), b(bytes, constant_values(1)), c(bytes, constant_values(1));
  for (Buffer* buffer : {&a, &b, &c}) buffer->allocate();
  const auto n = static_cast<std::int64_t>(bytes / sizeof(float));
  float* to = a.floats();
  const float* x = b.floats();
  const float* y = c.floats();
  const double time = fastest(seconds, [&] {
#pragma omp parallel for simd
    for (std::int64_t i = 0; i < n; ++i) to[i] = x[i] + 3 * y[i];
  });
  return BytesPerSecond(3 * static_cast<double>(bytes) / time);
}

}  // namespace epocast
