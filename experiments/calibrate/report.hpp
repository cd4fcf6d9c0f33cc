#pragma once
// What `epocast calibrate` prints of its fits, and how it writes its files.

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "costmodels/kernel_fit.hpp"
#include "costmodels/network_fit.hpp"

namespace epocast {

/// Errors by operator and pass, constants with 95 % intervals, worst residuals, and what to beware of.
void print_report(std::ostream& out, const std::vector<TestedFit>& fits);
void print_report(std::ostream& out, const std::vector<NetworkFit>& fits);

/// Measured against cross-validated times.
std::string plot_fits(const std::string& title, const std::vector<TestedFit>& fits);
/// Measured against fitted times of these points.
std::string plot_fits(const std::string& title, const std::vector<NetworkFit>& fits,
                      const std::vector<CollectiveTiming>& points);

/// What a step forecast with kernels of `library` contains, and what not, in one or two lines.
std::string what_is_forecast(const std::string& library);

}  // namespace epocast
