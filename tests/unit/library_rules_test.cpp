// What MPICH and NCCL take: the sizes at which they change, on both sides.
#include <catch2/catch.hpp>

#include "sim/collectives/library_rules.hpp"

namespace epocast::library_rules_test {

using A = CollectiveAlgorithm;
using Op = CollectiveOp;

TEST_CASE("MPICH changes algorithms at its documented sizes", "[choice]") {
  CHECK(taken_by_mpich(Op::all_reduce, 8, 2048) == A::recursive_doubling);
  CHECK(taken_by_mpich(Op::all_reduce, 8, 2052) == A::halving_doubling);
  // 8192 ranks cannot share out 4096 values of 4 bytes.
  CHECK(taken_by_mpich(Op::all_reduce, 8192, 16384) == A::recursive_doubling);
  CHECK(taken_by_mpich(Op::all_reduce, 8192, 32768) == A::halving_doubling);
  CHECK(taken_by_mpich(Op::reduce, 8, 2048) == A::binomial_tree);
  CHECK(taken_by_mpich(Op::reduce, 8, 4096) == A::halving_doubling);
  CHECK(taken_by_mpich(Op::reduce_scatter, 8, 524284) == A::halving_doubling);
  CHECK(taken_by_mpich(Op::reduce_scatter, 8, 524288) == A::pairwise);
  CHECK(taken_by_mpich(Op::all_gather, 8, 524284) == A::recursive_doubling);
  CHECK(taken_by_mpich(Op::all_gather, 8, 524288) == A::ring);
  CHECK(taken_by_mpich(Op::all_gather, 7, 81916) == A::bruck);
  CHECK(taken_by_mpich(Op::all_gather, 7, 81920) == A::ring);
  CHECK(taken_by_mpich(Op::all_to_all, 8, 8 * 256) == A::bruck);
  CHECK(taken_by_mpich(Op::all_to_all, 8, 8 * 260) == A::pairwise);
  CHECK(taken_by_mpich(Op::all_to_all, 7, 7 * 256) == A::pairwise);
  CHECK(taken_by_mpich(Op::broadcast, 8, 12284) == A::binomial_tree);
  CHECK(taken_by_mpich(Op::broadcast, 8, 12288) == A::halving_doubling);
  CHECK(taken_by_mpich(Op::broadcast, 7, 1e9) == A::binomial_tree);
  CHECK(taken_by_mpich(Op::gather, 8, 1e9) == A::binomial_tree);
  CHECK(taken_by_mpich(Op::scatter, 8, 1e9) == A::binomial_tree);
}

TEST_CASE("NCCL takes rings inside a node, and trees between many nodes unless the vector is large", "[choice]") {
  // One node of 8 V100, 130 GB/s. With LL the ring takes 6.6 + 14 x 0.6 us, the tree 6.8 + 2 x 7 x 0.6 us and more a
  // byte: 0.25 against 1/3.8 x 0.92 of the rate, on 7/4 of the vector against twice.
  const NcclNetwork node{.ranks = 8, .nodes = 1, .bus_bandwidth = 130e9, .nvlink = true, .ll128 = true};
  for (const double bytes : {1e3, 1e5, 1e7, 1e9}) CHECK(all_reduce_of_nccl(node, bytes) == A::ring);
  // 32 nodes of 8: a ring of LL has 2 x 255 steps, 64 of them over the network: 6.6 + 446 x 1 + 64 x 2.7 us = 625 us;
  // a tree 6.8 + 2 x (7 x 0.6 + 5 x 5) us = 65 us. At 1 GB the ring sends 1.99 of 1 GB at 100 GB/s in 20 ms and 3.6 ms
  // of latency with LL128; the tree has at most 92 x 0.94 / 2 GB/s: 23 ms, and LL128's latency of 118 us.
  const NcclNetwork pod{.ranks = 256, .nodes = 32, .bus_bandwidth = 100e9, .nvlink = true, .ll128 = true};
  for (const double bytes : {1e3, 1e5, 1e7}) CHECK(all_reduce_of_nccl(pod, bytes) == A::double_binary_tree);
  CHECK(all_reduce_of_nccl(pod, 1e10) == A::ring);
}

}  // namespace epocast::library_rules_test
