#pragma once
// The training programs of Qararyah 2020 and the machine they ran on.

#include <string>
#include <vector>

#include "experiments/place/place_job.hpp"

namespace epocast::pardnn2020 {

/// A network of Table 5.1, and how its program gets from the loss to updates (node_counts.csv).
struct Program {
  std::string model;
  OperatorGraphOptions options;
};
std::vector<Program> programs();
/// The one of this model. REQUIRES that there is one.
Program program_of(const std::string& model);

/// Its training step, with the optimizer of the program. Times are those of single operations on a V100.
NamedGraph training_graph(const Program& program, std::int64_t batch);
ModelGraphRequest program_request(const Program& program, std::int64_t batch);

/// Devices of a DGX-2: 150 GB/s each way over NVSwitch, 3.4 us (platforms/dgx2.xml), so many bytes of memory to be
/// used.
PlacementMachine dgx2(int devices, double memory = 0);
inline constexpr double kDeviceMemory = 32e9;
inline constexpr double kReserve = 0.1;  ///< section 5.1

/// Table 6.1's largest batch; 0 where it has a dash.
std::int64_t printed_batch(const std::string& model, int devices);

}  // namespace epocast::pardnn2020
