#include "costmodels/dense.hpp"

#include <cmath>
#include <utility>

namespace epocast {
namespace {

double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Cholesky::Cholesky(SquareMatrix a) : lower_(std::move(a)) {
  const std::size_t n = lower_.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      lower_(i, j) = (lower_(i, j) - dot(lower_.row(i), lower_.row(j), j)) / lower_(j, j);
    const double pivot = lower_(i, i) - dot(lower_.row(i), lower_.row(i), i);
    if (!(pivot > 0) || !std::isfinite(pivot)) {
      ok_ = false;
      return;
    }
    lower_(i, i) = std::sqrt(pivot);
  }
}

std::vector<double> Cholesky::solve_lower(std::span<const double> b) const {
  std::vector<double> x(b.begin(), b.end());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - dot(lower_.row(i), x.data(), i)) / lower_(i, i);
  return x;
}

std::vector<double> Cholesky::solve(std::span<const double> b) const {
  std::vector<double> x = solve_lower(b);
  for (std::size_t i = x.size(); i-- > 0;) {
    x[i] /= lower_(i, i);
    for (std::size_t j = 0; j < i; ++j) x[j] -= lower_(i, j) * x[i];
  }
  return x;
}

SquareMatrix Cholesky::inverse() const {
  // Row j of `columns` is column j of L^-1, so that both loops run along rows: A^-1 = L^-T L^-1.
  const std::size_t n = lower_.size();
  SquareMatrix columns(n);
  for (std::size_t j = 0; j < n; ++j) {
    columns(j, j) = 1 / lower_(j, j);
    for (std::size_t i = j + 1; i < n; ++i)
      columns(j, i) = -dot(lower_.row(i) + j, columns.row(j) + j, i - j) / lower_(i, i);
  }
  SquareMatrix out(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) out(i, j) = out(j, i) = dot(columns.row(i) + i, columns.row(j) + i, n - i);
  return out;
}

double Cholesky::log_determinant() const {
  double sum = 0;
  for (std::size_t i = 0; i < lower_.size(); ++i) sum += 2 * std::log(lower_(i, i));
  return sum;
}

}  // namespace epocast
