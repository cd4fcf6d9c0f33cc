#pragma once
// The runs behind Table 5.15's cells of model parallelism, and the published numbers that go into them.

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/reproduce/eserol2019/single_processor.hpp"
#include "experiments/study.hpp"

namespace epocast::eserol2019 {

inline constexpr const char* kHypergraph = "Coarse-grain Hypergraph MP";

/// What goes in:
///  - the N=1 row: how long a step takes (single_processor_steps());
///  - the cuts of the layer-wise parts; works and volume of the other parts (table_5_15_parts.csv says from where);
///  - the rate at which the framework copies messages, fitted to the parameter servers' cells of N=2 (transport.csv);
///  - from chapter 4: gradients are computed where their parameters are, and "whenever a processor becomes idle, it
///    fetches the next batch": as many batches are under way as there are processors, each with the weights it finds.
class ModelParallelRuns {
 public:
  /// Throws ConfigError for data that cannot be read.
  ModelParallelRuns();

  /// Run time of 10 epochs in the table [s].
  double published(int workers, const std::string& method, const std::string& batch) const;

  /// One scenario for each of the batch sizes, of a method as the table calls it; kSingleProcessor with 1 worker.
  std::vector<Scenario> scenarios(const std::string& method, int workers, const std::string& batches) const;

 private:
  std::string strategy_of(const std::string& method, int workers) const;

  std::filesystem::path folder_;
  PublishedTable times_, parts_, transport_;
};

}  // namespace epocast::eserol2019
