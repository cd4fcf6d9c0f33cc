#pragma once
// A small linear program whose columns are too many to list: how much of each column fits into given capacities.

#include <vector>

namespace epocast {

/// Maximises the sum of x over columns a >= 0 with sum(a x) <= capacity, x >= 0, by the primal simplex method with an
/// explicit inverse of the basis (Dantzig's revised simplex). Columns come one at a time, from whoever prices them
/// (Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", 1961). Pivots are chosen for
/// capacities that differ by parts of a million, so that ties, of which equal links make many, do not lead in circles
/// (Charnes, "Optimality and degeneracy in linear programming", 1952); the solution is that of the true ones.
class PackingProgram {
 public:
  explicit PackingProgram(std::vector<double> capacity);

  /// What a unit of each resource is worth now. A column with sum(price a) < 1 would raise the optimum; where there is
  /// none, and no price is negative, x is the optimum.
  std::vector<double> prices() const;
  /// Capacity that is left of each resource.
  std::vector<double> slack() const;
  /// Raises the column's x until a basic variable falls to 0. Returns the number of the column, -1 if nothing limits
  /// it.
  int enter(const std::vector<double>& column);
  /// The same for what is left unused of a resource: for one with a negative price.
  void enter_slack(int resource);
  /// x by column.
  std::vector<double> values() const;

 private:
  bool pivot(const std::vector<double>& column, int variable);
  /// Value of the basic variable of each row.
  std::vector<double> solution() const;

  int rows_;
  int columns_ = 0;
  std::vector<double> inverse_;  ///< of the basis, row by row
  std::vector<double> capacity_;
  std::vector<double> value_;  ///< of the basic variable of each row, for capacities that differ a little
  std::vector<int> basic_;     ///< column >= 0, or -1 - resource for its slack
};

}  // namespace epocast
