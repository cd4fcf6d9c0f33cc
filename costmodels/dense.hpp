#pragma once
// The little dense linear algebra that fitting needs: symmetric positive definite systems of a few hundred unknowns.

#include <cstddef>
#include <span>
#include <vector>

namespace epocast {

/// A square matrix, row by row.
class SquareMatrix {
 public:
  explicit SquareMatrix(std::size_t size) : size_(size), values_(size * size) {}
  std::size_t size() const { return size_; }
  double& operator()(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double operator()(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }
  const double* row(std::size_t row) const { return values_.data() + row * size_; }

 private:
  std::size_t size_;
  std::vector<double> values_;
};

/// The lower triangle L of a symmetric positive definite A = L L^T.
class Cholesky {
 public:
  /// Reads the lower triangle of `a`. Check ok() before use.
  explicit Cholesky(SquareMatrix a);
  bool ok() const { return ok_; }  ///< false if `a` is not positive definite
  /// x with A x = b. REQUIRES ok().
  std::vector<double> solve(std::span<const double> b) const;
  /// y with L y = b; |y|^2 = b^T A^-1 b. REQUIRES ok().
  std::vector<double> solve_lower(std::span<const double> b) const;
  SquareMatrix inverse() const;  ///< of A; REQUIRES ok()
  double log_determinant() const;

 private:
  SquareMatrix lower_;
  bool ok_ = true;
};

}  // namespace epocast
