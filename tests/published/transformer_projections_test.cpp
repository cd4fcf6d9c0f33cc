// The four projections of transformer layers, of another framework and divided over 1 to 8 devices, by calibrations
// that have nothing of it: within 12 % (median) of kernels above 20 us.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/csv_table.hpp"

namespace epocast::transformer_projections_test {

TEST_CASE("projections of transformer layers at tensor shares of 1 to 8 are within 12 %") {
  const std::filesystem::path root(EPOCAST_SOURCE_DIR);
  const CsvTable table = CsvTable::load(root / "tests" / "published" / "transformer_projections.csv");
  for (const std::string device : {"a100", "h100"}) {
    const ComputeCalibration calibration =
        load_compute_calibration(root / "costmodels" / "calibrations" / (device + "_bf16.yaml"));
    std::vector<double> errors;
    for (const CsvRow& row : table.rows()) {
      if (row.text("device") != device) continue;
      const auto count = [&](const char* column) {
        return static_cast<std::int64_t>(row.number(column, Range{1, 1e9}));
      };
      const KernelShape shape{GemmShape{count("outputs"), count("tokens"), count("inputs"), true, false},
                              KernelPass::forward};
      const double forecast =
          calibration.find("gemm", KernelPass::forward)->time(kernel_work(shape), calibration.rates);
      errors.push_back(std::abs(forecast / row.number("time_s", Range{1e-9, 1}) - 1));
    }
    REQUIRE(errors.size() > 500);
    std::ranges::sort(errors);
    const double median = errors[errors.size() / 2], ninetieth = errors[errors.size() * 9 / 10];
    WARN(fmt::format("{}: {} products, median {:.1f} %, 90th percentile {:.1f} %", device, errors.size(), 100 * median,
                     100 * ninetieth));
    CHECK(median <= 0.12);
  }
}

}  // namespace epocast::transformer_projections_test
