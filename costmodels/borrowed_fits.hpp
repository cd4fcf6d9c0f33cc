#pragma once
// What a device's measurements lack, taken from another calibration: as it is where that is of the same device, with
// other libraries, and in proportion where it is of another.
//
// In proportion: class factors that were not measured (the transpositions of gradients, mostly) stand to the other
// calibration's as those of the classes that both have do, on average; kernels that only move data as additions do. A
// pass that was not measured (the backward pass of fused attention) takes each of the other's constants times own over
// other's constant of a pass that both have; where there is none, the constants as they are, which apply to the own
// rates. No residuals are taken over: the other device's do not hold here. Of kernels that only move data each measured
// one counts by its bytes: what a step waits for is large, while most that are measured are small.
//
// Of the same device: kernels that only move data keep the other libraries' bandwidth, with the own launch.
//
// Scope and limits: software of the same kind on devices of the same kind. What is borrowed in proportion counts as
// extrapolated (KernelFit::extrapolates()), so that forecasts say so.

#include <string>

#include "costmodels/compute_calibration.hpp"

namespace epocast {

/// Whether both were measured on one device in one precision.
bool are_of_same_device(const ComputeCalibration& own, const ComputeCalibration& other);

/// Adds to `own`; `name` is what it calls `other`. Says what was added, for people: "gemm nn, gemm nt, attention
/// backward"; empty if nothing is missing.
std::string borrow_missing(ComputeCalibration& own, const ComputeCalibration& other, const std::string& name);

}  // namespace epocast
