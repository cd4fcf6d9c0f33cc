#pragma once
// The number format that a network is trained in.

#include <string>
#include <vector>

namespace epocast {

/// fp32, or matrix products of narrower numbers. tf32 rounds operands on their way into the multiplier: everything is
/// stored in fp32. With fp16 and bf16, mixed precision (Micikevicius et al. 2018): weights, activations and gradients
/// have 2 bytes, the optimizer keeps an fp32 copy of the weights beside its state. With fp8, operands of products with
/// weights are rounded to 8 bits on their way into the multiplier (Micikevicius et al. 2022); all else is as in bf16.
enum class Precision { fp32, tf32, fp16, bf16, fp8 };

inline constexpr Precision kPrecisions[] = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                                            Precision::fp8};

const char* to_string(Precision precision);
std::vector<std::string> precision_names();
/// Throws std::invalid_argument with the nearest name as a hint.
Precision parse_precision(const std::string& name);

/// Of a weight, an activation or a gradient: 4 or 2.
double bytes_per_value(Precision precision);
/// Of the optimizer's own copy of a weight: 4, or 0 where the weight itself has them.
double master_bytes_per_value(Precision precision);

}  // namespace epocast
