#pragma once
// What gradients lose on their way, and what is added to the next ones.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace epocast::learning {

/// How a worker's gradient is turned into what travels, bucket by bucket, as strategies' `compression` counts its
/// bytes.
struct Compression {
  enum Method {
    none,
    fp16,     ///< rounded to half precision, at most 65504
    int8,     ///< rounded to 255 steps between plus and minus the largest (Dettmers 2015)
    one_bit,  ///< the mean of those that are positive, and of the others (Seide et al. 2014)
    top_k,    ///< the largest, as they are (Lin et al. 2018)
  } method = none;
  double share = 0.01;  ///< of the values that top_k sends, rounded up

  /// Whether what is lost is added to the next gradient ("error feedback").
  bool keeps_rest() const { return method == one_bit || method == top_k; }
  /// Turns the values of one bucket into what arrives. Where the rest is kept, it is added first, and what was lost
  /// becomes the new one: what arrives and the rest add up to the values and the rest before. REQUIRES: as many of
  /// both.
  void apply(std::span<double> values, std::span<double> rest) const;
};

/// By the words of a study. REQUIRES: one of compression_names().
Compression::Method compression_method(const std::string& name);
std::vector<std::string> compression_names();

}  // namespace epocast::learning
