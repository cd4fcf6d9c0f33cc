// Tables in the manner of Baidu's DeepBench training results: one shape per row, times in milliseconds.

#include <algorithm>
#include <map>
#include <set>

#include "experiments/calibrate/import.hpp"

namespace epocast {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr Range kSize{1, 1e9};

const std::vector<std::string> kCommon{"library",     "precision",     "flags",       "cpu",         "source_repo",
                                       "source_path", "source_commit", "source_cell", "result_date", "latest"};

std::vector<std::string> with_common(std::vector<std::string> columns) {
  columns.insert(columns.end(), kCommon.begin(), kCommon.end());
  return columns;
}

/// Collects timings and refuses duplicates: a shape may come twice only from two cells of the source, as a repetition.
class Collector {
 public:
  explicit Collector(KernelMeasurements& out) : out_(out) {}

  void add(const CsvRow& row, const CsvTable& table, KernelShape shape, const std::string& column) {
    const std::string cell = table.has("source_cell") ? row.text("source_cell") : "";
    if (!seen_.emplace(std::string(shape.family()) + to_string(shape.pass) + shape.text(), cell).second)
      throw row.error(column, "there is already a row for " + shape.text() + "; remove one");
    out_.timings.push_back({std::move(shape), Seconds(row.seconds(column, kMillisecond)), row.line()});
  }

 private:
  KernelMeasurements& out_;
  std::set<std::pair<std::string, std::string>> seen_;
};

ConvolutionShape convolution_of(const CsvRow& row) {
  const auto whole = [&](const char* column) { return row.whole(column, kSize); };
  const auto pad = [&](const char* column) { return row.whole(column, {0, 1e9}); };
  ConvolutionShape s{.batch = whole("N"),
                     .channels = whole("C"),
                     .height = whole("H"),
                     .width = whole("W"),
                     .filters = whole("K"),
                     .kernel_height = whole("R"),
                     .kernel_width = whole("S"),
                     .out_height = 1,
                     .out_width = 1,
                     .stride = std::max(whole("stride_h"), whole("stride_w")),
                     .groups = 1};
  const auto outputs = [&](std::int64_t in, std::int64_t kernel, std::int64_t padding, std::int64_t stride) {
    if (in + 2 * padding < kernel) throw row.error("", "the kernel is larger than the padded input");
    return (in + 2 * padding - kernel) / stride + 1;
  };
  s.out_height = outputs(s.height, s.kernel_height, pad("pad_h"), whole("stride_h"));
  s.out_width = outputs(s.width, s.kernel_width, pad("pad_w"), whole("stride_w"));
  return s;
}

void read_convolutions(const CsvTable& table, const std::vector<const CsvRow*>& rows, KernelMeasurements& out) {
  table.check_columns(
      {"W", "H", "C", "N", "K", "R", "S", "pad_h", "pad_w", "stride_h", "stride_w", "fwd_ms", "bwd_inputs_ms",
       "bwd_params_ms", "device"},
      with_common({"fwd_gflop", "fwd_tflops", "bwd_inputs_tflops", "bwd_params_tflops", "fwd_algorithm"}));
  Collector collector(out);
  for (const CsvRow* row : rows) {
    const ConvolutionShape shape = convolution_of(*row);
    collector.add(*row, table, {shape, KernelPass::forward}, "fwd_ms");
    // First layers need no gradient of their input: missing, not zero.
    if (!row->empty("bwd_inputs_ms")) collector.add(*row, table, {shape, KernelPass::backward_data}, "bwd_inputs_ms");
    if (!row->empty("bwd_params_ms"))
      collector.add(*row, table, {shape, KernelPass::backward_weights}, "bwd_params_ms");
  }
}

void read_products(const CsvTable& table, const std::vector<const CsvRow*>& rows, KernelMeasurements& out) {
  table.check_columns({"M", "N", "K", "a_transpose", "b_transpose", "time_ms", "device"}, with_common({"tflops"}));
  Collector collector(out);
  for (const CsvRow* row : rows) {
    const auto transposed = [&](const char* column) {
      const std::string& text = row->text(column);
      if (text != "N" && text != "T") throw row->error(column, "must be N or T, not '" + text.substr(0, 20) + "'");
      return text == "T";
    };
    const GemmShape shape{row->whole("M", kSize), row->whole("N", kSize), row->whole("K", kSize),
                          transposed("a_transpose"), transposed("b_transpose")};
    collector.add(*row, table, {shape, KernelPass::forward}, "time_ms");
  }
}

void read_recurrent(const CsvTable& table, const std::vector<const CsvRow*>& rows, KernelMeasurements& out) {
  table.check_columns({"cell", "hidden_units", "batch_n", "timesteps", "fwd_ms", "device"},
                      with_common({"bwd_ms", "bwd_inputs_ms", "bwd_params_ms", "fwd_tflops"}));
  const std::map<std::string, std::int64_t> gates{{"vanilla", 1}, {"gru", 3}, {"lstm", 4}};
  Collector collector(out);
  for (const CsvRow* row : rows) {
    const auto cell = gates.find(row->text("cell"));
    if (cell == gates.end())
      throw row->error("cell", "unknown cell '" + row->text("cell").substr(0, 20) + "'" +
                                   name_hint(row->text("cell"), {"vanilla", "lstm", "gru"}));
    const RecurrentShape shape{cell->second, row->whole("hidden_units", kSize), row->whole("batch_n", kSize),
                               row->whole("timesteps", kSize)};
    collector.add(*row, table, {shape, KernelPass::forward}, "fwd_ms");
    const auto add_if_there = [&](const char* column, KernelPass pass) {
      if (table.has(column) && !row->empty(column)) collector.add(*row, table, {shape, pass}, column);
    };
    add_if_there("bwd_ms", KernelPass::backward);
    add_if_there("bwd_inputs_ms", KernelPass::backward_data);
    add_if_there("bwd_params_ms", KernelPass::backward_weights);
  }
}

}  // namespace

bool is_deepbench(const CsvTable& table) {
  return table.has("device") && (table.has("fwd_ms") || (table.has("a_transpose") && table.has("time_ms")));
}

KernelMeasurements import_deepbench(const CsvTable& table, const ImportOptions& options) {
  KernelMeasurements out;
  const std::vector<const CsvRow*> rows = choose_device(table, options, out.device, out.left_out);
  const auto text = [&](const char* column) { return table.has(column) ? rows.front()->text(column) : std::string(); };
  out.source = text("source_repo") + " " + text("source_path") + " " + text("source_commit");
  if (out.source == "  ") out.source = table.file();
  out.library = text("library");
  out.date = text("result_date");
  if (table.has("precision")) out.precision = parse_precision(options.precision);
  if (table.has("cell")) {
    read_recurrent(table, rows, out);
  } else if (table.has("R")) {
    read_convolutions(table, rows, out);
  } else {
    read_products(table, rows, out);
  }
  return out;
}

}  // namespace epocast
