#include "sim/collectives/packing_program.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace epocast {
namespace {

constexpr double kSpread = 1e-6;
constexpr double kZero = 1e-11;  // what rounding leaves of numbers around 1

}  // namespace

PackingProgram::PackingProgram(std::vector<double> capacity)
    : rows_(static_cast<int>(capacity.size())),
      inverse_(capacity.size() * capacity.size(), 0),
      capacity_(std::move(capacity)),
      value_(capacity_) {
  // Multiples of the golden ratio, modulo 1, are all different and never close to one another.
  for (int l = 0; l < rows_; ++l) value_[l] *= 1 + kSpread * std::fmod(l * 0.6180339887498949, 1);
  for (int i = 0; i < rows_; ++i) {
    inverse_[static_cast<std::size_t>(i * rows_ + i)] = 1;
    basic_.push_back(-1 - i);
  }
}

std::vector<double> PackingProgram::prices() const {
  std::vector<double> out(static_cast<std::size_t>(rows_), 0);
  for (int i = 0; i < rows_; ++i)
    if (basic_[i] >= 0)
      for (int l = 0; l < rows_; ++l) out[l] += inverse_[i * rows_ + l];
  return out;
}

std::vector<double> PackingProgram::solution() const {
  std::vector<double> out(static_cast<std::size_t>(rows_), 0);
  for (int i = 0; i < rows_; ++i) {
    for (int l = 0; l < rows_; ++l) out[i] += inverse_[i * rows_ + l] * capacity_[l];
    out[i] = std::max(0.0, out[i]);  // a value that only the differences make positive
  }
  return out;
}

std::vector<double> PackingProgram::slack() const {
  const std::vector<double> value = solution();
  std::vector<double> out(static_cast<std::size_t>(rows_), 0);
  for (int i = 0; i < rows_; ++i)
    if (basic_[i] < 0) out[-1 - basic_[i]] = value[i];
  return out;
}

std::vector<double> PackingProgram::values() const {
  const std::vector<double> value = solution();
  std::vector<double> out(static_cast<std::size_t>(columns_), 0);
  for (int i = 0; i < rows_; ++i)
    if (basic_[i] >= 0) out[basic_[i]] = value[i];
  return out;
}

int PackingProgram::enter(const std::vector<double>& column) { return pivot(column, columns_) ? columns_++ : -1; }

void PackingProgram::enter_slack(int resource) {
  std::vector<double> column(static_cast<std::size_t>(rows_), 0);
  column[resource] = 1;
  pivot(column, -1 - resource);
}

bool PackingProgram::pivot(const std::vector<double>& column, int variable) {
  std::vector<double> change(static_cast<std::size_t>(rows_), 0);  // of the basic variables, per unit of the new one
  for (int i = 0; i < rows_; ++i)
    for (int l = 0; l < rows_; ++l) change[i] += inverse_[i * rows_ + l] * column[l];
  int leaving = -1;
  for (int i = 0; i < rows_; ++i)
    if (change[i] > kZero && (leaving < 0 || value_[i] * change[leaving] < value_[leaving] * change[i])) leaving = i;
  if (leaving < 0) return false;

  const double raise = value_[leaving] / change[leaving];
  for (int l = 0; l < rows_; ++l) inverse_[leaving * rows_ + l] /= change[leaving];
  for (int i = 0; i < rows_; ++i) {
    if (i == leaving || change[i] == 0) continue;
    for (int l = 0; l < rows_; ++l) inverse_[i * rows_ + l] -= change[i] * inverse_[leaving * rows_ + l];
    value_[i] = std::max(0.0, value_[i] - change[i] * raise);
  }
  value_[leaving] = raise;
  basic_[leaving] = variable;
  return true;
}

}  // namespace epocast
