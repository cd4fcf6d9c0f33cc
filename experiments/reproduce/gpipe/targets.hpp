#pragma once
// Huang et al. 2019, GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism (NeurIPS 2019).

#include "experiments/reproduce/target.hpp"

namespace epocast::gpipe {

/// The share of time in which the devices of a pipeline idle, for all numbers of stages and micro-batches.
Target bubble();

}  // namespace epocast::gpipe
