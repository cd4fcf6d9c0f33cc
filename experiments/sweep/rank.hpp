#pragma once
// One of several processes of a sweep that a launcher such as mpirun or srun has started together.
//
// They need no library of the launcher, only its variables, and never talk to each other. Each does a part of the
// scenarios, with a store of its own beside the one that is asked for, which it opens twice, in turn with the others:
// to see what is there, and to hand over what it has.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "experiments/store/result_store.hpp"
#include "experiments/sweep/sweep.hpp"

namespace epocast {

struct Rank {
  std::int64_t number = 0;   ///< from 0
  std::int64_t of = 1;       ///< ranks; 1 without a launcher
  std::int64_t on_node = 1;  ///< of them on this machine, as far as is known

  Shard shard() const { return {number + 1, of}; }
};

/// From the variables of Open MPI, of launchers that speak PMI (MPICH, Intel MPI, Cray) or of Slurm's srun. The batch
/// script of a Slurm job is no rank, though it has a number.
Rank launched_rank();

/// Processors for this rank: its part of the machine's, and none that it may not use.
int processors_of(const Rank& rank);

/// "s.sqlite", of which this is the second of four: "s.part-2-of-4.sqlite".
std::filesystem::path part_of_store(const std::filesystem::path& store, const Shard& shard);

/// Puts into the part what the store, if there is one, has of the part's scenarios.
void begin_part(const std::vector<Scenario>& scenarios, const std::filesystem::path& store, ResultStore& part,
                const SweepOptions& options);

/// Puts a part's last run of a study into the store and removes the part. Returns that run as it is then in the store,
/// and tells `each` exit code and error of its rows that have one.
StoredRun end_part(const std::filesystem::path& part, const std::string& study, const std::filesystem::path& store,
                   const std::function<void(int, const std::string&)>& each);

}  // namespace epocast
