// Ring: every rank passes a block of n/P to its right neighbour, P-1 times. Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 2009; Thakur, Rabenseifner, Gropp, IJHPCA 2005.
#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {

Rounds ring_rounds(const Request& request) {
  const double block = request.block();
  const int steps = request.ranks - 1;
  const Round reduce_scatter = shift_round(1, block, block, steps);
  const Round all_gather = shift_round(1, block, 0, steps);
  if (request.op == CollectiveOp::reduce_scatter) return {reduce_scatter};
  if (request.op == CollectiveOp::all_gather) return {all_gather};
  return {reduce_scatter, all_gather};
}

}  // namespace epocast::collectives
