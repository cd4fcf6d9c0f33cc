#pragma once
// Which gradients travel together, and when they are there.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

/// What one communication of gradients carries.
enum class Granularity {
  tensor,
  layer,
  unit,  ///< a layer, with the normalisation right behind it if it is a convolution (parameter_unit.hpp)
  bucket,
  cycle,
  model
};

/// How gradients are put into buckets.
struct BucketRule {
  Granularity granularity = Granularity::bucket;
  Bytes limit{25.0 * (1 << 20)};  ///< a bucket is closed once it has reached its size
  Bytes first{25.0 * (1 << 20)};  ///< the same for the first bucket; smaller starts communication sooner
  Seconds cycle{1e-3};            ///< Granularity::cycle: tensors wait for the end of the cycle they are made in
};

/// Gradients that one communication carries.
struct Bucket {
  std::string name;  ///< of the tensor or layer, or of the first and last layer in it
  Bytes bytes;
  std::size_t ready_after = 0;      ///< layer whose backward pass makes the last of them
  std::int64_t cycle = 0;           ///< at whose end it is sent; 0 if it need not wait
  Seconds delay{};                  ///< from when it is ready until then
  std::vector<std::size_t> layers;  ///< with a gradient in it, in the order of the backward pass
};

/// Buckets in the reverse order of the model's parameters, as Li et al. 2020 (PyTorch DDP, section 3.2.3) make them: of
/// a layer the bias before the weight. One may exceed its size by its last tensor. With Granularity::cycle (Sergeev and
/// Del Balso 2018, Horovod's tensor fusion) time since the start of the backward pass is cut into cycles, at whose ends
/// tensors are sent; which of them together is found out when they are (sim/fusion.hpp). Dates are those of an
/// uninterrupted backward pass.
std::vector<Bucket> make_buckets(const WorkloadTrace& trace, const BucketRule& rule);

}  // namespace epocast
