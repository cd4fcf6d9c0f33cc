#include "learning/scheme.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sim/config.hpp"

namespace epocast::learning {
namespace {

const std::vector<Scheme>& table() {
  static const std::vector<Scheme> all{
      {"single", Scheme::synchronous},
      {"data_parallel", Scheme::synchronous},
      {"layerwise_data_parallel", Scheme::synchronous},
      {"two_chunk_data_parallel", Scheme::synchronous},
      {"sharded_data_parallel", Scheme::synchronous},
      {"ddp", Scheme::synchronous},
      {"horovod", Scheme::synchronous},
      {"fsdp", Scheme::synchronous},
      {"zero1", Scheme::synchronous},
      {"zero2", Scheme::synchronous},
      {"zero3", Scheme::synchronous},
      {"parameter_server", Scheme::server},
      {"hogwild", Scheme::server},
      {"downpour", Scheme::server},
      {"agn", Scheme::server, true},
      {"adag", Scheme::server, true, true},
      {"async_momentum", Scheme::server, false, false, true},
      {"model_averaging", Scheme::averaging},
      {"async_local_sgd", Scheme::averaging},
      {"easgd", Scheme::elastic},
      {"aeasgd", Scheme::elastic},
      {"local_sgd", Scheme::replicas},
      {"gossip", Scheme::neighbours},
      {"pipeline", Scheme::pipeline},
      {"gpipe", Scheme::pipeline},
      {"pipedream", Scheme::pipeline},
  };
  return all;
}

}  // namespace

std::vector<std::string> schemes() {
  std::vector<std::string> names;
  for (const Scheme& scheme : table()) names.push_back(scheme.strategy);
  return names;
}

Scheme scheme_of(const std::string& strategy) {
  const auto found = std::ranges::find(table(), strategy, &Scheme::strategy);
  if (found != table().end()) return *found;
  std::string valid;
  for (const std::string& name : schemes()) valid += (valid.empty() ? "" : ", ") + name;
  throw std::invalid_argument("what '" + strategy + "' does to parameters is not known (valid: " + valid + ")");
}

}  // namespace epocast::learning
