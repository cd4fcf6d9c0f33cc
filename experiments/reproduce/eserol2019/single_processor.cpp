#include "experiments/reproduce/eserol2019/single_processor.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodels/robust_fit.hpp"

namespace epocast::eserol2019 {

std::string single_processor_steps(const PublishedTable& table_5_15) {
  std::vector<double> batches, times;
  for (const PublishedCell& cell : table_5_15.cells()) {
    if (cell.keys[1] != kSingleProcessor) continue;
    batches.push_back(std::stod(cell.keys[2]));
    times.push_back(cell.value * batches.back() / kImages);
  }
  const auto errors = [&](const std::vector<double>& line) {
    std::vector<double> out;
    for (std::size_t i = 0; i < batches.size(); ++i)
      out.push_back(std::log((line[0] + line[1] * batches[i]) / times[i]));
    return out;
  };
  // Two parameters, and cells enough: they may lie anywhere.
  constexpr double kAnywhere = 10;
  const std::vector<double> line = fit_robustly({{"fixed", "s", times.front(), kAnywhere},
                                                 {"per image", "s", times.back() / batches.back(), kAnywhere}},
                                                errors, kUsualError)
                                       .values();
  std::string list;
  for (const double batch : batches)
    list += fmt::format("{}{{batch: {}, time: {} s}}", list.empty() ? "" : ", ", batch, line[0] + line[1] * batch);
  return "[" + list + "]";
}

}  // namespace epocast::eserol2019
