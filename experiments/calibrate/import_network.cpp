#include "experiments/calibrate/import_network.hpp"

#include <set>
#include <tuple>

namespace epocast {
namespace {

constexpr Range kRanks{2, 1e7};
constexpr Range kBytes{1, 1e15};

/// Collects all-reduces and refuses duplicates.
class NetworkCollector {
 public:
  explicit NetworkCollector(NetworkMeasurements& out) : out_(out) {}

  void add(const CsvRow& row, const std::string& library, const std::string& ranks, Seconds time) {
    CollectiveTiming timing{CollectiveOp::all_reduce,         library, static_cast<int>(row.whole(ranks, kRanks)),
                            row.number("size_bytes", kBytes), time,    row.line()};
    if (!seen_.emplace(library, timing.ranks, timing.bytes).second)
      throw row.error("size_bytes", "there is already a row for this library, ranks and size; remove one");
    out_.timings.push_back(std::move(timing));
  }

 private:
  NetworkMeasurements& out_;
  std::set<std::tuple<std::string, int, double>> seen_;
};

NetworkMeasurements import_deepbench_allreduce(const CsvTable& table, const ImportOptions& options) {
  table.check_columns({"size_bytes", "procs", "time_ms", "algorithm", "device", "interconnect"},
                      {"size_floats", "nodes", "procs_per_node", "std_ms", "published_aggregate_gbytes_per_s",
                       "bus_gbytes_per_s", "mpi", "fabric_software", "precision", "flags", "cpu", "source_repo",
                       "source_path", "source_commit", "source_cell", "result_date", "latest"});
  NetworkMeasurements out;
  const std::vector<const CsvRow*> rows = choose_device(table, options, out.device, out.left_out);
  const auto text = [&](const char* column) { return table.has(column) ? rows.front()->text(column) : std::string(); };
  for (const CsvRow* row : rows)  // within and between nodes may have one each
    if (const std::string& name = row->text("interconnect"); out.interconnect.find(name) == std::string::npos)
      out.interconnect += (out.interconnect.empty() ? "" : " / ") + name;
  out.source = table.has("source_path") ? text("source_repo") + " " + text("source_path") + " " + text("source_commit")
                                        : table.file();
  out.date = text("result_date");
  NetworkCollector collector(out);
  for (const CsvRow* row : rows)
    collector.add(*row, row->text("algorithm"), "procs", Seconds(row->seconds("time_ms", 1e-3)));
  return out;
}

NetworkMeasurements import_nccl(const CsvTable& table, const ImportOptions& options) {
  table.check_columns({"device", "n_gpus", "size_bytes", "out_of_place_us"},
                      {"dtype", "out_of_place_busbw_gbytes_per_s", "in_place_us", "in_place_busbw_gbytes_per_s",
                       "source_repo", "source_path", "source_commit", "source_line"});
  NetworkMeasurements out;
  const std::vector<const CsvRow*> rows = choose_device(table, options, out.device, out.left_out);
  out.interconnect = out.device;
  out.source = table.has("source_repo") ? rows.front()->text("source_repo") + " " + rows.front()->text("source_commit")
                                        : table.file();
  NetworkCollector collector(out);
  for (const CsvRow* row : rows) collector.add(*row, "NCCL", "n_gpus", Seconds(row->seconds("out_of_place_us", 1e-6)));
  return out;
}

}  // namespace

NetworkMeasurements import_collectives(const std::filesystem::path& file, const ImportOptions& options) {
  const CsvTable table = CsvTable::load(file);
  if (is_network_measurements(table)) return read_network_measurements(table);
  if (table.has("procs")) return import_deepbench_allreduce(table, options);
  if (table.has("n_gpus")) return import_nccl(table, options);
  throw table.error(table.columns_line(), "",
                    "has the columns of no known format (epocast: operation, library, ranks, bytes, time_s; DeepBench: "
                    "size_bytes, procs, time_ms, ...; "
                    "NCCL: n_gpus, size_bytes, out_of_place_us)");
}

}  // namespace epocast
