#include "experiments/calibrate/pytorch.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "experiments/calibrate/child_output.hpp"
#include "experiments/calibrate/kernel_list.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"

namespace epocast {

bool pytorch_is_installed() {
  try {
    const std::string answer = output_of(
        "python3", {"python3", "-c", "import importlib.util; print(importlib.util.find_spec('torch') is not None)"});
    return answer == "True\n";
  } catch (const ConfigError&) {
    return false;  // there is no python3
  }
}

KernelMeasurements measure_pytorch_kernels(const std::vector<Model>& models, const MeasureOptions& options) {
  const std::filesystem::path script = data_directory() / "workloads" / "microbench" / "pytorch_kernels.py";
  std::vector<std::string> command{
      "python3", script, "-", "-o", "-", "--budget", fmt::format("{} s", options.budget.value)};
  if (options.threads > 0) command.insert(command.end(), {"--threads", std::to_string(options.threads)});
  std::ostringstream kernels;
  write_kernel_list(kernels, models, options.batches, options.optimizer, options.precision);
  std::istringstream measured(output_of("pytorch_kernels.py", command, kernels.str()));
  return read_kernel_measurements(CsvTable::read(measured, "pytorch_kernels.py"));
}

}  // namespace epocast
