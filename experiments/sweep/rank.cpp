#include "experiments/sweep/rank.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "experiments/fork_pool.hpp"

namespace epocast {
namespace {

/// The number at the beginning of a variable, such as 4 of Slurm's "4(x2)".
std::optional<std::int64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view = text;
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(view.data(), view.data() + view.size(), number);
  return status == std::errc() ? std::optional(number) : std::nullopt;
}

struct Launcher {
  const char *rank, *ranks, *on_node;
};
// SLURM_NTASKS is there in batch scripts, too, which are not one of so many; SLURM_STEP_NUM_TASKS comes from srun.
constexpr Launcher kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
                                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}};

using Members = std::map<std::int64_t, std::string>;

/// Whether they have different rows of a scenario.
bool differ(const Members& a, const Members& b) {
  return std::ranges::any_of(b, [&](const auto& member) {
    const auto found = a.find(member.first);
    return found != a.end() && found->second != member.second;
  });
}

}  // namespace

Rank launched_rank() {
  for (const Launcher& launcher : kLaunchers) {
    const auto number = number_in(launcher.rank), of = number_in(launcher.ranks);
    if (number && of && *number >= 0 && *number < *of)
      return {*number, *of, std::max<std::int64_t>(1, number_in(launcher.on_node).value_or(1))};
  }
  return {};
}

int processors_of(const Rank& rank) {
  const auto share = static_cast<std::int64_t>(sysconf(_SC_NPROCESSORS_ONLN)) / rank.on_node;
  return static_cast<int>(std::clamp<std::int64_t>(share, 1, available_processors()));
}

std::filesystem::path part_of_store(const std::filesystem::path& store, const Shard& shard) {
  std::filesystem::path part = store;
  return part.replace_filename(
      fmt::format("{}.part-{}-of-{}{}", store.stem().string(), shard.part, shard.of, store.extension().string()));
}

void begin_part(const std::vector<Scenario>& scenarios, const std::filesystem::path& store, ResultStore& part,
                const SweepOptions& options) {
  if (!std::filesystem::exists(store)) return;
  ResultStore whole(store, ResultStore::Use::write_in_turn);
  part.copy_rows(whole, sweep_needs(scenarios, &whole, options).present);
}

StoredRun end_part(const std::filesystem::path& part, const std::string& study, const std::filesystem::path& store,
                   const std::function<void(int, const std::string&)>& each) {
  ResultStore whole(store, ResultStore::Use::write_in_turn);
  {
    ResultStore own(part, ResultStore::Use::read);
    const StoredRun run = own.last_run(study).value();
    // What is listed of a study is its last run: that of this sweep, which the first rank to end begins.
    const auto last = whole.last_run(study);
    if (!last || last->plan != run.plan || differ(whole.members(last->id), own.members(run.id))) whole.begin_run(run);
    whole.merge(own);
  }
  std::filesystem::remove(part);
  StoredRun run = whole.last_run(study).value();
  whole.for_each_error(run.id, each);
  return run;
}

}  // namespace epocast
