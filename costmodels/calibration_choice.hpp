#pragma once
// Which of the shipped calibrations of kernels are of a device, for `calibration: auto` and for messages.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/precision.hpp"

namespace epocast {

/// Whether both name one chip: "NVIDIA V100 (DGX-1)" and "NVIDIA Tesla V100 SXM2 16GB". Words with digits count, but
/// for sizes of memory, sockets and revisions of boards.
bool same_chip(std::string_view a, std::string_view b);

/// Whether kernels measured in one precision serve another: fp16 and bf16 have the same rates and bytes.
bool serves(Precision measured, Precision asked);

/// Names of the calibrations of kernels in `folder` that are of the device and precision. First those that name no
/// other chip beside it, of these those that were measured, of these the shortest name: that without another library's.
/// Of a device that says whose kernels its own are like, only those of its very model: its chip has other rates there.
std::vector<std::string> calibrations_of(const Device& device, Precision precision,
                                         const std::filesystem::path& folder);

/// Names of the measured calibrations that may stand in at the device's rates where it has none: those of
/// `device.kernels_like`, or its own, in that precision or, for tf32, in bf16 or fp16.
std::vector<std::string> stand_ins_for(const Device& device, Precision precision, const std::filesystem::path& folder);

}  // namespace epocast
