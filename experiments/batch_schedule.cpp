#include "experiments/batch_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario.hpp"

namespace epocast {

std::int64_t active_workers(std::int64_t batch, std::int64_t workers) {
  std::int64_t active = std::min(batch, workers);
  while (batch % active != 0) --active;
  return active;
}

std::vector<PhaseSettings> BatchDoubling::phases(std::int64_t interval, std::int64_t samples, bool drop_last) const {
  std::vector<PhaseSettings> out;
  std::int64_t left = epochs;
  for (std::int64_t batch = from; left > 0; batch = std::min(2 * batch, to)) {
    const std::int64_t lasts = batch == to ? left : std::min(left, interval);
    const auto active = static_cast<std::ptrdiff_t>(active_workers(batch, static_cast<std::int64_t>(workers.size())));
    PhaseSettings& phase =
        out.emplace_back(PhaseSettings{{workers.begin(), workers.begin() + active}, batch, lasts, samples, drop_last});
    phase.iterations = phase.iterations_of(batch);
    left -= lasts;
  }
  return out;
}

BatchDoubling read_batch_doubling(const ConfigNode& node, std::vector<DeviceId> workers, std::int64_t samples) {
  if (!node.has("rule"))
    throw node.error("a schedule is a list of phases, or a map with a rule: {rule: doubling, from: 64, to: 1024, ..}");
  const std::string rule = node.at("rule").as_string();
  if (rule != "doubling") throw node.at("rule").error("unknown rule '" + rule + "'" + name_hint(rule, {"doubling"}));
  BatchDoubling out{.workers = std::move(workers), .place = node};
  const auto most = static_cast<double>(samples);
  out.from = node.at("from").as_int(Range{1, most});
  out.to = node.at("to").as_int(Range{1, most});
  if (out.to < out.from)
    throw node.at("to").error(fmt::format("the batch grows from {}, so {} is too small", out.from, out.to));
  const ConfigNode every = node.at("every");
  out.every = every.as_string() == "adaptive" ? 0 : every.as_int(Range{1, 1e6});
  out.epochs = node.at("epochs").as_int(Range{1, 1e6});
  return out;
}

}  // namespace epocast
