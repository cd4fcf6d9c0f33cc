#include <cmath>
#include <map>

#include "experiments/reproduce/pardnn2020/programs.hpp"
#include "experiments/reproduce/pardnn2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"

namespace epocast::pardnn2020 {
namespace {

constexpr int kMostDoublings = 16;  // batches up to 32,768

/// Graphs of one program by batch: building one takes as long as placing it.
class Graphs {
 public:
  explicit Graphs(Program program) : program_(std::move(program)) {}
  const NamedGraph& at(int doublings) {
    const auto found = graphs_.find(doublings);
    if (found != graphs_.end()) return found->second;
    return graphs_.emplace(doublings, training_graph(program_, std::int64_t{1} << doublings)).first->second;
  }

 private:
  Program program_;
  std::map<int, NamedGraph> graphs_;
};

/// With ParDNN as it is written: transfers do not wait for each other, and steps are kept whatever they do.
bool fits(const NamedGraph& graph, int devices) {
  const PlacementMachine machine = dgx2(devices, devices == 1 ? kDeviceMemory : (1 - kReserve) * kDeviceMemory);
  if (memory_bound(graph.graph, machine).kind != MemoryBound::Kind::none) return false;
  return pardnn(graph.graph, machine, {.literal = true}).back().fits;
}

/// The largest power of two; 0 if not even one sample fits.
double largest_batch(Graphs& graphs, int devices) {
  int fitting = -1, too_large = kMostDoublings;
  while (too_large - fitting > 1) {
    const int middle = (fitting + too_large) / 2;
    (fits(graphs.at(middle), devices) ? fitting : too_large) = middle;
  }
  return fitting < 0 ? 0 : std::ldexp(1, fitting);
}

/// How many of the cells are exact, or within a factor of two; a zero where the table has a batch is neither.
void add_shares(std::vector<TargetRow>& rows) {
  double cells = 0, exact = 0, near = 0;
  for (const TargetRow& row : rows) {
    if (row.role != Role::predicted) continue;
    ++cells;
    if (row.simulated == *row.published) ++exact;
    if (row.simulated >= *row.published / 2 && row.simulated <= *row.published * 2) ++near;
  }
  const auto add = [&](const char* quantity, double count) {
    rows.push_back({.row = "all cells with a batch",
                    .quantity = quantity,
                    .unit = "%",
                    .published = std::nullopt,
                    .simulated = 100 * count / cells,
                    .role = Role::stated});
  };
  add("exact", exact);
  add("within a factor of two", near);
}

std::vector<TargetRow> run_largest_batches(const TargetContext&) {
  const PublishedTable table = PublishedTable::load(
      data_directory() / "experiments" / "reproduce" / "pardnn2020" / "table_6_1.csv", {"model", "devices"});
  std::vector<TargetRow> rows;
  std::map<std::string, Graphs> graphs;
  for (const Program& program : programs()) graphs.emplace(program.model, program);
  for (const PublishedCell& cell : table.cells()) {
    const std::string& model = cell.keys[0];
    const int devices = std::stoi(cell.keys[1]);
    TargetRow row{
        .row = model + " on " + cell.keys[1], .quantity = cell.quantity, .unit = cell.unit, .published = cell.value};
    if (cell.quantity != "largest batch") {
      const int from = table.value({model, "1"}, "largest batch") > 0 ? 1 : 4;
      const double reference = table.value({model, std::to_string(from)}, "largest batch");
      row.simulated = table.value({model, cell.keys[1]}, "largest batch") / (reference * devices / from);
      row.role = Role::exact;
      row.tolerance = 1e-9;
    } else if (const auto found = graphs.find(model); found != graphs.end()) {
      const double batch = largest_batch(found->second, devices);
      if (cell.value > 0) {
        const int from = table.value({model, "1"}, "largest batch") > 0 ? 1 : 4;
        row.simulated = batch;
        row.seen = true;  // which program a network is was decided with the table known
        row.trivial = 8 * table.value({model, std::to_string(from)}, "largest batch") * devices / from;
      } else {
        row.quantity = "nothing fits";
        row.unit = "1 if so";
        row.published = 1;
        row.simulated = batch > 0 ? 0 : 1;
        row.role = Role::exact;
      }
    } else {
      continue;  // wrn_3
    }
    rows.push_back(std::move(row));
  }
  add_shares(rows);
  return rows;
}

}  // namespace

Target largest_batches() {
  static constexpr const char* kWhy =
      "what TensorFlow's allocator and kernels hold beside outputs, and lengths of texts and films, are not printed";
  return {.paper = "pardnn2020",
          .table = "table_6_1",
          .description = "largest batches that fit, and their increase over data parallelism",
          .mape_bound = {},
          .run = run_largest_batches,
          .trivial_rule = "8 x the printed reference x devices",
          .known_misses = {{kMedian, 301, kWhy}, {kNinetieth, 701, kWhy}, {"wrn_2 on 2: nothing fits", 100, kWhy}},
          .bounds = {.median = 0.0, .ninetieth = 100.0, .share_of_trivial = {}}};
}

}  // namespace epocast::pardnn2020
