#include "experiments/batch_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario.hpp"

namespace epocast {

Spare read_spare(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word != "idle" && word != "replicate")
    throw node.error("unknown value '" + word + "'" + name_hint(word, {"idle", "replicate"}));
  return word == "idle" ? Spare::idle : Spare::replicate;
}

void share_unevenly(PhaseSettings& phase, Spare spare) {
  const auto have = static_cast<std::int64_t>(phase.workers.size());
  const std::int64_t samples = phase.global_batch, with_sample = std::min(have, samples);
  phase.shares.clear();
  if (spare == Spare::idle) phase.workers.resize(static_cast<std::size_t>(with_sample));
  if (samples % with_sample == 0 && static_cast<std::int64_t>(phase.workers.size()) == with_sample) return;
  for (std::size_t w = 0; w < phase.workers.size(); ++w)
    phase.shares.push_back(samples / with_sample + (static_cast<std::int64_t>(w) < samples % with_sample ? 1 : 0));
}

std::vector<PhaseSettings> BatchDoubling::phases(std::int64_t interval, std::int64_t samples, bool drop_last) const {
  std::vector<PhaseSettings> out;
  std::int64_t left = epochs;
  for (std::int64_t batch = from; left > 0; batch = std::min(2 * batch, to)) {
    const std::int64_t lasts = batch == to ? left : std::min(left, interval);
    PhaseSettings& phase = out.emplace_back(PhaseSettings{workers, batch, lasts, samples, drop_last});
    if (replicas == static_cast<std::int64_t>(workers.size())) share_unevenly(phase, spare);
    phase.iterations = phase.iterations_of(static_cast<double>(batch));
    left -= lasts;
  }
  return out;
}

BatchDoubling read_batch_doubling(const ConfigNode& node, std::vector<DeviceId> workers, std::int64_t replicas,
                                  std::int64_t samples) {
  if (!node.has("rule"))
    throw node.error("a schedule is a list of phases, or a map with a rule: {rule: doubling, from: 64, to: 1024, ..}");
  const std::string rule = node.at("rule").as_string();
  if (rule != "doubling") throw node.at("rule").error("unknown rule '" + rule + "'" + name_hint(rule, {"doubling"}));
  BatchDoubling out{.workers = std::move(workers), .replicas = replicas, .place = node};
  if (node.has("spare")) out.spare = read_spare(node.at("spare"));
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
