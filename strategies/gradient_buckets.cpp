#include "strategies/gradient_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "strategies/parameter_unit.hpp"

namespace epocast {
namespace {

/// Puts gradients into buckets, one after the other.
class Filling {
 public:
  Filling(const WorkloadTrace& trace, const BucketRule& rule)
      : trace_(trace), rule_(rule), units_(parameter_units(trace)) {}

  void add(std::size_t l, std::size_t gradient, Seconds made) {
    const LayerTrace& layer = trace_.layers[l];
    const GradientTensor& tensor = layer.gradients[gradient];
    if (opens_another(l)) {
      first_ = layer.name;
      Bucket& opened = buckets_.emplace_back();
      opened.name = travels_alone() ? tensor.name : first_;
    }
    Bucket& bucket = buckets_.back();
    bucket.bytes += tensor.bytes;
    bucket.ready_after = l;
    if (bucket.layers.empty() || bucket.layers.back() != l) bucket.layers.push_back(l);
    if (first_ != layer.name)
      bucket.name = rule_.granularity == Granularity::unit ? layer.name : first_ + ".." + layer.name;
    if (rule_.granularity == Granularity::cycle) {
      bucket.cycle = cycle_of(made);
      bucket.delay = std::max(Seconds(0), rule_.cycle * static_cast<double>(bucket.cycle) - made);
    }
  }

  std::vector<Bucket> take() { return std::move(buckets_); }

 private:
  /// Cycles end at multiples of their length; a gradient made at such a date, but for rounding, still catches it.
  std::int64_t cycle_of(Seconds made) const {
    return static_cast<std::int64_t>(std::ceil(made / rule_.cycle * (1 - 1e-12)));
  }

  bool travels_alone() const {
    return rule_.granularity == Granularity::tensor || rule_.granularity == Granularity::cycle;
  }

  bool opens_another(std::size_t l) const {
    if (buckets_.empty()) return true;
    const Bytes filled = buckets_.back().bytes;
    switch (rule_.granularity) {
      case Granularity::tensor:
      case Granularity::cycle: return true;
      case Granularity::layer: return buckets_.back().ready_after != l;
      case Granularity::unit: return units_.of(l) != units_.of(buckets_.back().ready_after);
      case Granularity::bucket: return filled >= (buckets_.size() == 1 ? rule_.first : rule_.limit);
      case Granularity::model: return false;
    }
    return true;
  }

  const WorkloadTrace& trace_;
  const BucketRule& rule_;
  ParameterUnits units_;
  std::vector<Bucket> buckets_;
  std::string first_;  ///< layer that opened the current bucket
};

}  // namespace

std::vector<Bucket> make_buckets(const WorkloadTrace& trace, const BucketRule& rule) {
  Filling filling(trace, rule);
  Seconds made;
  for (std::size_t l = trace.layers.size(); l-- > 0;) {
    made += trace.layers[l].times.backward().longest();  // an exchange waits for the slowest worker
    for (std::size_t g = trace.layers[l].gradients.size(); g-- > 0;) filling.add(l, g, made);
  }
  return filling.take();
}

}  // namespace epocast
