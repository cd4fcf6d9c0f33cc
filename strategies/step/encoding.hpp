#pragma once
// Sending fewer bytes than the gradients have.

#include <optional>

#include "sim/collective.hpp"
#include "sim/config.hpp"
#include "sim/registry.hpp"
#include "sim/strategy.hpp"

namespace epocast {

/// How gradients, or whatever replicas send each other of their parameters, are made smaller before they travel.
///
/// fp16: half of the bytes, summed by all-reduce. The others cannot be summed on the way: every worker gathers those of
/// all others (all-gather) and sums them itself. int8: one byte a value and one scale a bucket (Dettmers 2015).
/// one_bit: one bit a value and two scales a bucket, what was lost is added to the next gradient (Seide et al. 2014).
/// top_k: the largest values, each with its 4-byte index; the rest is added to the next gradient (Lin et al. 2018,
/// "Deep gradient compression"). What it does to the number of epochs is not modelled.
class Encoding {
 public:
  enum class Method { none, fp16, int8, one_bit, top_k };

  /// None.
  Encoding() = default;
  /// Reads the options `compression` and `top_k`. Throws ConfigError for a share without that method or out of range.
  explicit Encoding(const ConfigNode& options);
  static std::vector<ParameterInfo> parameters();
  /// Adds them to those of a synchronisation.
  static EntryInfo added_to(EntryInfo info);

  /// The same for parameters of this precision, or for what replicas send of this trace's gradients, instead of fp32.
  /// Throws ConfigError if they are no larger than fp16.
  Encoding of(Precision precision) const;
  Encoding of_gradients(const WorkloadTrace& trace) const;

  bool any() const { return method_ != Method::none; }
  /// Whether codes can be summed on the way; else everybody gets those of all others and sums them.
  bool sums_on_the_way() const { return method_ == Method::none || method_ == Method::fp16; }

  /// Bytes that one worker sends of gradients of this size.
  Bytes compressed(Bytes gradients) const;
  /// Bytes of them that it keeps back for the next time, and so in memory.
  Bytes rest(Bytes gradients) const { return keeps_rest() ? gradients : Bytes(0); }
  /// The collective that sums gradients of this size over all ranks of a group, without the time of coding.
  Collective sum(Bytes gradients, const CollectiveSettings& settings, GroupId group, int workers) const;
  /// What coding and decoding take on a device whose memory they read and write at full bandwidth: gradient and what
  /// was left over are read, the new rest and the code written; then all workers' codes are read and the sum written.
  /// Zero without compression. Throws ConfigError if the device's memory bandwidth is unknown.
  Seconds encode_time(Bytes gradients, const Device& device) const;
  Seconds decode_time(Bytes gradients, const Device& device, int workers) const;
  /// The same where each worker gets 1/workers of every other's gradients, and sums that.
  Seconds decode_share_time(Bytes gradients, const Device& device, int workers) const;

 private:
  Encoding of_values(double bytes, Precision precision) const;
  bool keeps_rest() const { return method_ == Method::one_bit || method_ == Method::top_k; }

  std::optional<ConfigNode> options_;  ///< none without compression
  Method method_ = Method::none;
  double share_ = 0;                                       ///< of the values that top_k sends
  double value_bytes_ = bytes_per_value(Precision::fp32);  ///< of what travels
};

}  // namespace epocast
