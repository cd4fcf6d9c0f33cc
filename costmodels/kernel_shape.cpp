#include "costmodels/kernel_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>

#include "sim/config.hpp"

namespace epocast {
namespace {

constexpr double kBytesPerFloat = 4;          // fp32
constexpr std::int64_t kLargest = 1LL << 40;  // of any dimension; products still fit a double

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

double real(std::int64_t x) { return static_cast<double>(x); }
double log2_of(std::int64_t x) { return std::log2(real(x)); }

/// Twice the work where one number covers both gradients.
double passes(KernelPass pass) { return pass == KernelPass::backward ? 2 : 1; }

KernelWork work_of(const ConvolutionShape& s, KernelPass pass) {
  const double taps = real(s.kernel_height * s.kernel_width);
  const double channels = real(s.channels) / real(s.groups);
  const double outputs = real(s.batch) * real(s.out_height) * real(s.out_width);
  KernelWork w;
  w.flop = passes(pass) * 2 * outputs * real(s.filters) * channels * taps;
  w.bytes = passes(pass) * kBytesPerFloat *
            (real(s.batch) * real(s.channels) * real(s.height) * real(s.width) + outputs * real(s.filters) +
             real(s.filters) * channels * taps);
  if (pass == KernelPass::backward_data) {
    w.m = real(s.batch) * real(s.height) * real(s.width);
    w.n = real(s.channels);
    w.k = real(s.filters) / real(s.groups) * taps;
  } else if (pass == KernelPass::backward_weights) {
    w.m = channels * taps;
    w.n = real(s.filters);
    w.k = outputs;
  } else {
    w.m = outputs;
    w.n = real(s.filters);
    w.k = channels * taps;
  }
  const std::int64_t size = s.kernel_height * s.kernel_width;
  w.kernel_class = size == 1 ? "1x1" : s.kernel_height == 3 && s.kernel_width == 3 ? "3x3" : "large";
  if (s.stride > 1) w.kernel_class += " strided";
  // Categories are 3 apart: as far as an eightfold size.
  w.features = {log2_of(s.batch),    log2_of(s.out_height * s.out_width),
                std::log2(channels), log2_of(s.filters),
                std::log2(taps),     s.stride > 1 ? 3.0 : 0.0};
  w.amounts = {0, 1};
  return w;
}

KernelWork work_of(const GemmShape& s, KernelPass pass) {
  KernelWork w;
  w.m = real(s.m);
  w.n = real(s.n);
  w.k = real(s.k);
  w.count = real(s.count);
  w.flop = passes(pass) * 2 * w.m * w.n * w.k * w.count;
  w.bytes = passes(pass) * kBytesPerFloat * (w.m * w.n + w.m * w.k + w.n * w.k) * w.count;
  w.kernel_class = std::string(s.transpose_a ? "t" : "n") + (s.transpose_b ? "t" : "n");
  const std::int64_t rows[] = {s.transpose_a ? s.k : s.m, s.transpose_b ? s.n : s.k, s.m};  // as BLAS stores them
  for (const std::int64_t row : rows)
    while (row % static_cast<std::int64_t>(w.row_unit) != 0) w.row_unit /= 2;
  w.features = {std::log2(w.m), std::log2(w.n), std::log2(w.k), s.transpose_a ? 3.0 : 0.0, s.transpose_b ? 3.0 : 0.0};
  return w;
}

KernelWork work_of(const RecurrentShape& s, KernelPass pass) {
  KernelWork w;
  w.m = real(s.gates * s.hidden);
  w.n = real(s.batch);
  w.k = real(s.hidden);
  w.repeats = real(s.steps);
  w.flop = passes(pass) * 2 * w.m * w.n * w.k * w.repeats;
  // Weights are read anew in every step: a persistent kernel, which keeps them in registers, is faster than this.
  w.bytes = passes(pass) * kBytesPerFloat * (w.m * w.n + w.m * w.k + w.n * w.k) * w.repeats;
  if (pass == KernelPass::backward_weights) {  // one product over all steps
    w.n = real(s.hidden);
    w.k = real(s.batch) * real(s.steps);
    w.repeats = 1;
    w.bytes = kBytesPerFloat * (w.m * w.n + w.m * w.k + w.n * w.k);
  }
  w.kernel_class = s.gates == 1 ? "vanilla" : s.gates == 3 ? "gru" : s.gates == 4 ? "lstm" : "other";
  w.features = {log2_of(s.hidden), log2_of(s.batch), log2_of(s.steps), 3 * log2_of(s.gates)};
  w.amounts = {1, 2};
  return w;
}

KernelWork work_of(const MemoryShape& s, KernelPass pass) {
  KernelWork w;
  w.bytes = passes(pass) * kBytesPerFloat * real(s.values);
  w.kernel_class = s.op;
  // Kernels for few channels are slower by far than for many: as many to the next power of two are alike.
  w.kind = s.channels > 0 ? fmt::format("{} {}", s.op, std::bit_floor(static_cast<std::uint64_t>(s.channels))) : s.op;
  w.features = {log2_of(s.values)};
  return w;
}

KernelWork work_of(const AttentionShape& s, KernelPass pass) {
  KernelWork w;
  const bool backward = pass != KernelPass::forward;
  const double heads = real(s.batch * s.heads);
  const double pairs = real(s.queries) * (s.causal ? real(s.keys + 1) / 2 : real(s.keys));
  w.m = real(s.queries);
  w.n = real(s.keys);
  w.k = real(s.key_features);
  w.count = heads;
  w.scores = heads * pairs;
  w.longest_row = real(s.keys) * real(s.queries) / pairs;
  // Forward: scores and weighted sum. Backward: scores again, gradients of softmax, values, queries and keys (Dao et
  // al. 2022, Algorithm 4).
  w.flop = 2 * w.scores *
           (backward ? 3 * real(s.key_features) + 2 * real(s.value_features) : real(s.key_features + s.value_features));
  const double of_queries = heads * real(s.queries) * real(s.key_features + s.value_features);
  const double of_keys = real(s.batch * s.kv_heads) * real(s.keys) * real(s.key_features + s.value_features);
  // Backward reads all four and the output's gradient, and writes three gradients.
  w.bytes = kBytesPerFloat * (backward ? 2 * of_queries + 2 * of_keys : of_queries + of_keys);
  if (s.cached) w.copied_bytes = 2 * kBytesPerFloat * of_keys;
  w.kernel_class = s.causal ? "causal" : "full";
  w.features = {std::log2(heads), std::log2(w.m), std::log2(w.n), log2_of(s.key_features),
                log2_of(s.kv_heads * s.batch)};
  return w;
}

/// The `key=value` pairs of a shape's text, each of which must be asked for.
class Fields {
 public:
  explicit Fields(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find(' '), text.size());
      const std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (word.empty()) continue;
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) throw std::invalid_argument(fmt::format("'{}' is not KEY=VALUE", word));
      const std::string key(word.substr(0, equals));
      if (!values_.emplace(key, word.substr(equals + 1)).second)
        throw std::invalid_argument("'" + key + "' is given twice");
    }
  }

  std::int64_t number(const std::string& key, std::int64_t least = 1) {
    const std::string text = word(key);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > kLargest)
      throw std::invalid_argument(fmt::format("{}: '{}' is not a whole number from {} to 2^40", key, text, least));
    return value;
  }
  std::int64_t number_or(const std::string& key, std::int64_t fallback) {
    return values_.contains(key) ? number(key) : fallback;
  }
  bool flag_or(const std::string& key, bool fallback) { return values_.contains(key) ? flag(key) : fallback; }
  bool flag(const std::string& key) {
    const std::int64_t value = number(key, 0);
    if (value > 1) throw std::invalid_argument(key + " must be 0 or 1");
    return value == 1;
  }
  std::string word(const std::string& key) {
    asked_.push_back(key);
    const auto found = values_.find(key);
    if (found == values_.end()) throw std::invalid_argument("'" + key + "' is missing");
    std::string out = found->second;
    values_.erase(found);
    return out;
  }
  void check_all_read() const {
    if (!values_.empty())
      throw std::invalid_argument("unknown key '" + values_.begin()->first + "'" +
                                  name_hint(values_.begin()->first, asked_));
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> asked_;
};

decltype(KernelShape::of) parse_dimensions(std::string_view family, Fields& f) {
  if (family == "convolution")
    return ConvolutionShape{f.number("n"),  f.number("c"),      f.number("h"),           f.number("w"),
                            f.number("k"),  f.number("r"),      f.number("s"),           f.number("oh"),
                            f.number("ow"), f.number("stride"), f.number_or("groups", 1)};
  if (family == "gemm")
    return GemmShape{f.number("m"), f.number("n"), f.number("k"), f.flag("ta"), f.flag("tb"), f.number_or("count", 1)};
  if (family == "recurrent")
    return RecurrentShape{f.number("gates"), f.number("hidden"), f.number("batch"), f.number("steps")};
  if (family == "memory") {
    std::string op = f.word("op");
    if (op.empty()) throw std::invalid_argument("'op' is empty");
    return MemoryShape{std::move(op), f.number("values"), f.number_or("channels", 0)};
  }
  if (family == "attention") {
    const AttentionShape s{f.number("batch"),          f.number("heads"), f.number("kv_heads"),
                           f.number("queries"),        f.number("keys"),  f.number("key_features"),
                           f.number("value_features"), f.flag("causal"),  f.flag_or("cached", false)};
    if (s.heads % s.kv_heads != 0) throw std::invalid_argument("kv_heads must divide heads");
    if (s.causal && s.queries > s.keys) throw std::invalid_argument("causal=1 needs at least as many keys as queries");
    return s;
  }
  throw std::invalid_argument(fmt::format("unknown operator '{}'{}", family, name_hint(family, kernel_families())));
}

}  // namespace

const char* to_string(KernelPass pass) {
  switch (pass) {
    case KernelPass::forward: return "forward";
    case KernelPass::backward_data: return "backward_data";
    case KernelPass::backward_weights: return "backward_weights";
    case KernelPass::backward: return "backward";
  }
  return "";
}

std::vector<std::string> kernel_pass_names() { return {"forward", "backward_data", "backward_weights", "backward"}; }

KernelPass parse_kernel_pass(std::string_view name) {
  const std::vector<std::string> names = kernel_pass_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw std::invalid_argument(fmt::format("unknown pass '{}'{}", name, name_hint(name, names)));
  return static_cast<KernelPass>(found - names.begin());
}

std::vector<std::string> kernel_families() { return {"convolution", "gemm", "recurrent", "memory", "attention"}; }

const char* KernelShape::family() const {
  constexpr const char* kNames[] = {"convolution", "gemm", "recurrent", "memory", "attention"};
  return kNames[of.index()];
}

std::string KernelShape::text() const {
  return std::visit(
      Overloaded{
          [](const ConvolutionShape& s) {
            std::string out =
                fmt::format("n={} c={} h={} w={} k={} r={} s={} oh={} ow={} stride={}", s.batch, s.channels, s.height,
                            s.width, s.filters, s.kernel_height, s.kernel_width, s.out_height, s.out_width, s.stride);
            return s.groups == 1 ? out : out + fmt::format(" groups={}", s.groups);
          },
          [](const GemmShape& s) {
            std::string out =
                fmt::format("m={} n={} k={} ta={:d} tb={:d}", s.m, s.n, s.k, s.transpose_a, s.transpose_b);
            return s.count == 1 ? out : out + fmt::format(" count={}", s.count);
          },
          [](const RecurrentShape& s) {
            return fmt::format("gates={} hidden={} batch={} steps={}", s.gates, s.hidden, s.batch, s.steps);
          },
          [](const MemoryShape& s) {
            const std::string out = fmt::format("op={} values={}", s.op, s.values);
            return s.channels == 0 ? out : out + fmt::format(" channels={}", s.channels);
          },
          [](const AttentionShape& s) {
            return fmt::format(
                "batch={} heads={} kv_heads={} queries={} keys={} key_features={} value_features={} causal={:d}{}",
                s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.key_features, s.value_features, s.causal,
                s.cached ? " cached=1" : "");
          }},
      of);
}

KernelShape parse_kernel_shape(std::string_view family, std::string_view pass, std::string_view text) {
  KernelShape shape;
  shape.pass = parse_kernel_pass(pass);
  Fields fields(text);
  shape.of = parse_dimensions(family, fields);
  fields.check_all_read();
  return shape;
}

KernelWork kernel_work(const KernelShape& shape) {
  return std::visit([&](const auto& s) { return work_of(s, shape.pass); }, shape.of);
}

RepeatedGemm as_products(const RecurrentShape& s, KernelPass pass) {
  const std::int64_t rows = s.gates * s.hidden;
  if (pass == KernelPass::backward_weights) return {{s.hidden, rows, s.batch * s.steps, false, true}, 1};
  if (pass == KernelPass::forward) return {{rows, s.batch, s.hidden, true, false}, real(s.steps)};
  return {{s.hidden, s.batch, rows, false, false}, real(s.steps)};
}

}  // namespace epocast
