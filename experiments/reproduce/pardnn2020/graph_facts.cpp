#include <algorithm>
#include <stdexcept>

#include "experiments/reproduce/pardnn2020/figures.hpp"
#include "experiments/reproduce/pardnn2020/programs.hpp"
#include "experiments/reproduce/pardnn2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"

namespace epocast::pardnn2020 {
namespace {

/// As printed: 300 GB/s between two devices, and no word on latency.
constexpr double kPrintedBandwidth = 300e9;

/// The time of all edges of the step over that of all nodes. An edge counts as all that its node puts out, as section
/// 5.1 has it: communication is estimated from the size of the output of each node.
double ccr(const std::string& model, std::int64_t batch) {
  const ModelOperators step = model_operators(program_request(program_of(model), batch));
  double seconds = 0, bytes = 0;
  for (const double s : step.seconds) seconds += s;
  for (std::size_t n = 0; n < step.graph.size(); ++n) {
    if (!runs(step.graph.phase[n])) continue;
    for (std::uint32_t i = step.graph.in_begin[n]; i < step.graph.in_begin[n + 1]; ++i) {
      const std::uint32_t from = step.graph.producer[i];
      const double read = step.graph.edge_bytes[i];
      if (read > 0 && runs(step.graph.phase[from])) bytes += std::max(read, step.graph.output_bytes[from]);
    }
  }
  return bytes / kPrintedBandwidth / seconds;
}

double parallelism(const std::string& model) {
  return degree_of_parallelism(training_graph(program_of(model), printed_batch(model, 4)).graph);
}

double more_parallel(const std::string& a, const std::string& b) { return parallelism(a) > parallelism(b) ? 1 : 0; }

/// Bytes of the outputs of all matrix products of a step.
double product_outputs(std::int64_t batch) {
  const OperatorGraph graph = model_operators(program_request(program_of("word_rnn"), batch)).graph;
  double bytes = 0;
  for (std::size_t n = 0; n < graph.size(); ++n)
    if (graph.operation_of(n) == "MatMul") bytes += graph.output_bytes[n];
  return bytes;
}

/// Word-RNN's peak on one device at batch 256, and the part of it that does not grow with the batch: what 0 samples
/// would need, from batches 256 and 512.
struct Share {
  double peak, fixed, weight_gradients;
};
Share word_rnn_peak() {
  const auto peak_at = [](std::int64_t batch, double* gradients) {
    const NamedGraph named = training_graph(program_of("word_rnn"), batch);
    const Placement one(named.graph.size(), 0);
    const ReplayResult result = replay(named.graph, dgx2(1), one);
    const std::vector<Residence> all = residences(named.graph, one, result);
    const MemoryPeak peak = memory_peaks(all, 1).front();
    // A step's gradient of a cell's weights is larger than anything that has the batch.
    constexpr double kCellWeights = 100e6;
    for (const Residence& r : all)
      if (gradients != nullptr && r.begin <= peak.time && peak.time < r.end && r.bytes > kCellWeights &&
          named.graph.lifetime[r.node] == Lifetime::normal)
        *gradients += r.bytes;
    return peak.bytes;
  };
  Share out{0, 0, 0};
  out.peak = peak_at(256, &out.weight_gradients);
  out.fixed = 2 * out.peak - peak_at(512, nullptr);
  return out;
}

double variables(const Program& program) {
  const NamedGraph named = training_graph(program, 1);
  double bytes = 0;
  for (std::size_t n = 0; n < named.graph.size(); ++n)
    if (named.graph.lifetime[n] == Lifetime::residual) bytes += named.graph.memory[n];
  return bytes;
}

double value(const std::string& fact, const std::string& quantity) {
  const std::string model = fact.substr(0, fact.find(' '));
  if (quantity == "communication to computation") {
    if (fact == "word_rnn batch 256 over batch 2048") return ccr("word_rnn", 256) / ccr("word_rnn", 2048);
    if (fact == "word_rnn batch 256") return ccr("word_rnn", 256);
    if (fact == "word_rnn batch 2048") return ccr("word_rnn", 2048);
    return ccr(model, printed_batch(model, 4));
  }
  if (quantity == "persistent variables") {
    Program program = program_of(model);
    program.options.optimizer = Optimizer::sgd;  // one copy of the parameters is what the text counts
    return variables(program) / 1e9;
  }
  if (quantity == "growth of products' outputs") return 100 * (product_outputs(2048) / product_outputs(1024) - 1);
  if (quantity == "more parallel") return more_parallel(model, fact.substr(fact.rfind(' ') + 1));
  if (fact == "figure 4.3 first schedule") return figure_4_3_peak(true);
  if (fact == "figure 4.3 second schedule") return figure_4_3_peak(false);
  if (fact == "figure 4.2 level-aware") return figure_4_2().level_aware;
  if (fact == "figure 4.2 guided") return figure_4_2().guided;
  throw std::logic_error("no rule for " + fact);
}

double factor_of(const std::string& quantity, const std::string& fact) {
  if (quantity == "communication to computation") return fact.find("over") == std::string::npos ? 2 : 1.3;
  if (quantity == "persistent variables") return 1.1;
  return 1.3;
}

std::vector<TargetRow> run_graph_facts(const TargetContext&) {
  const PublishedTable table =
      PublishedTable::load(data_directory() / "experiments" / "reproduce" / "pardnn2020" / "graph_facts.csv", {"fact"});
  std::vector<TargetRow> rows;
  for (const PublishedCell& cell : table.cells()) {
    const bool is_figure = cell.keys[0].starts_with("figure");
    rows.push_back({.row = cell.keys[0],
                    .quantity = cell.quantity,
                    .unit = cell.unit,
                    .published = cell.value,
                    .simulated = value(cell.keys[0], cell.quantity),
                    .role = is_figure || cell.quantity == "more parallel" ? Role::exact : Role::stated,
                    .tolerance = 1e-9,
                    .factor = factor_of(cell.quantity, cell.keys[0])});
    if (is_figure) rows.back().note = "reconstructed: weights are in the image only";
  }
  const Share share = word_rnn_peak();
  const auto ours = [&](const char* quantity, const char* unit, double simulated,
                        const char* row = "word_rnn batch 256 on 1 device") {
    rows.push_back({.row = row,
                    .quantity = quantity,
                    .unit = unit,
                    .published = std::nullopt,
                    .simulated = simulated,
                    .role = Role::stated});
  };
  ours("peak memory", "GB", share.peak / 1e9);
  ours("part of the peak that has no batch", "%", 100 * share.fixed / share.peak);
  ours("gradients of cells' weights at the peak", "GB", share.weight_gradients / 1e9);
  ours("persistent variables with its program's momentum", "GB", variables(program_of("wrn")) / 1e9, "wrn");
  return rows;
}

}  // namespace

Target graph_facts() {
  return {
      .paper = "pardnn2020",
      .table = "graphs",
      .description = "what the text says of single graphs; figures 4.2 and 4.3",
      .mape_bound = {},
      .run = run_graph_facts,
      .known_misses = {
          {"trn: communication to computation", 55,
           "lengths of texts and what the profile counted as work are not in the thesis; at half the rate it is 1.43"},
          {"word_rnn batch 256 over batch 2048: communication to computation", 46,
           "small products take long on a real device for more reasons than the fits of their kernels know"}}};
}

}  // namespace epocast::pardnn2020
