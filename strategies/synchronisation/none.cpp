#include "strategies/synchronisation/none.hpp"

#include <fmt/format.h>

namespace epocast {
namespace {

class OwnPlace final : public PlaceSynchronisation {
 public:
  explicit OwnPlace(const ParameterPlace& place) : place_(place) {}

  Lanes update(int /*step*/) override {
    if (!place_.by_layer) return place_.stage.task(place_.chunk.update, {"update", place_.chunk.name});
    for (const LayerTrace& layer : place_.trace.layers)
      if (layer.times.update.any()) place_.stage.task(layer.times.update, {"update", layer.name});
    return {};
  }

 private:
  ParameterPlace place_;
};

}  // namespace

EntryInfo None::info() { return {"none", "one replica, which has nobody to agree with", {}}; }

std::unique_ptr<PlaceSynchronisation> None::at(const ParameterPlace& place) const {
  if (place.replicas() > 1)
    throw options_.error(fmt::format(
        "{} replicas would train networks of their own; use synchronisation: all_reduce, or a mesh without replicas",
        place.replicas()));
  return std::make_unique<OwnPlace>(place);
}

}  // namespace epocast
