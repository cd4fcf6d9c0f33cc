#include "experiments/calibrate/discrepancy.hpp"

#include <cmath>

#include "costmodels/dense.hpp"

namespace epocast {
namespace {

constexpr double kLength = 2;       // doublings of workers or of the batch over which the discrepancy changes
constexpr double kOwnShare = 0.25;  // variance of a step's own error, over that of the discrepancy

double correlation(const StepPlace& a, const StepPlace& b) {
  if (a.platform != b.platform || a.model != b.model || a.strategy != b.strategy) return 0;
  const double workers = std::log2(a.workers / b.workers) / kLength, batch = std::log2(a.batch / b.batch) / kLength;
  return std::exp(-0.5 * (workers * workers + batch * batch));
}

}  // namespace

double Discrepancy::factor(const StepPlace& place) const {
  double sum = 0;
  for (const Pull& pull : pulls_) sum += pull.weight * correlation(place, pull.place);
  return std::exp(sum);
}

Discrepancy find_discrepancy(const std::vector<StepPlace>& places, const std::vector<StepRemainder>& remainders) {
  const std::size_t n = places.size();
  SquareMatrix covariance(n);
  std::vector<double> errors;
  for (std::size_t a = 0; a < n; ++a) {
    errors.push_back(remainders[a].error);
    for (std::size_t b = 0; b < n; ++b)
      covariance(a, b) = remainders[a].slope * remainders[b].slope * correlation(places[a], places[b]);
    covariance(a, a) += kOwnShare * remainders[a].doubt;
  }
  const std::vector<double> solved = Cholesky(covariance).solve(errors);  // positive definite: each step has its own
  std::vector<Discrepancy::Pull> pulls;
  for (std::size_t a = 0; a < n; ++a) pulls.push_back({places[a], remainders[a].slope * solved[a]});
  return Discrepancy(std::move(pulls));
}

}  // namespace epocast
