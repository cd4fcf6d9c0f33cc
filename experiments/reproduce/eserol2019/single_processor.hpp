#pragma once
// Table 5.15's row of one worker, from which all runs on more start.

#include <string>

#include "experiments/reproduce/published_table.hpp"

namespace epocast::eserol2019 {

inline constexpr double kImages = 102400;  ///< of a run: 10 epochs of 10,240
inline constexpr const char* kSingleProcessor = "Single Processor";
/// Relative error of a cell that is nothing unusual, for fits.
inline constexpr double kUsualError = 0.03;

/// `compute.step_time` for all batch sizes of the row, from the line (time of a step = a + b x batch size) that fits it
/// best (fit_robustly). The cells themselves are no line: a step of 32 images is printed with twice the time of one of
/// 16, and with three quarters of the time of one of 64, which no row of more workers repeats.
std::string single_processor_steps(const PublishedTable& table_5_15);

}  // namespace epocast::eserol2019
