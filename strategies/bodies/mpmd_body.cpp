#include "strategies/bodies/mpmd_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace epocast {

void AroundBody::check_synchronisation(const std::string& body) const {
  const Part& part = synchronisation;
  if (part.name != "all_reduce")
    throw part.place.error(
        fmt::format("with body {} replicas sum each gradient as soon as it is there; use synchronisation: all_reduce, "
                    "or a body whose devices run one program, such as tensor",
                    body));
  for (const std::string& key : part.options.keys())
    if (key != "name")
      throw part.options.at(key).error(
          fmt::format("with body {} each gradient is summed by itself, as `collective` says; leave this out", body));
}

void AroundBody::refuse_schedule(const std::string& reason) const {
  if (schedule) throw schedule->error(reason + "; leave schedule out");
}

DividedModel MpmdBody::divide(DividedModel /*model*/, int /*parts*/, const ConfigNode& /*place*/) const {
  throw std::logic_error("a body of many programs has no part that all devices share");
}

std::unique_ptr<Strategy> compose_mpmd(const MpmdBody& body, const std::string& name, const ConfigNode& options,
                                       const Mesh& mesh) {
  AroundBody around{mesh, ReplicaTeams::along(mesh, name), {}, read_part(options, "synchronisation", "all_reduce")};
  if (options.has("schedule")) around.schedule = read_part(options, "schedule", "1f1b").options;
  return body.step(around);
}

EntryInfo body_info(EntryInfo strategy, const std::string& name, const std::vector<std::string>& without) {
  strategy.name = name;
  std::erase_if(strategy.parameters, [&](const ParameterInfo& parameter) {
    return std::ranges::find(without, parameter.name) != without.end();
  });
  return strategy;
}

}  // namespace epocast
