#include "experiments/partition/patoh_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>
#include <sstream>
#include <string_view>
#include <vector>

#include "sim/error.hpp"
#include "sim/input_file.hpp"

namespace epocast {
namespace {

constexpr double kLargestTotal = 1 << 30;
constexpr int kMostParts = 32767;
constexpr long kMostVertices = 10'000'000;

/// Lines of numbers; comments and empty lines are skipped.
class NumberLines {
 public:
  NumberLines(std::istream& in, const std::string& name) : in_(in), where_{name} {}

  /// The next line's words; none at the end of the file.
  bool next() {
    words_.clear();
    while (words_.empty() && std::getline(in_, line_)) {
      ++where_.line;
      std::string_view rest(line_);
      rest = rest.substr(0, rest.find('%'));
      while (!rest.empty()) {
        const std::size_t begin = rest.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) break;
        const std::size_t end = std::min(rest.find_first_of(" \t\r", begin), rest.size());
        words_.push_back(rest.substr(begin, end - begin));
        rest.remove_prefix(end);
      }
    }
    if (in_.bad()) throw error("cannot be read to its end");
    return !words_.empty();
  }

  std::size_t size() const { return words_.size(); }

  long whole(std::size_t i, const char* what, long least, long most) const {
    long value = 0;
    const std::string_view word = words_[i];
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size() || value < least || value > most)
      throw error(fmt::format("{} must be a whole number from {} to {}, not '{:.40}'", what, least, most, word));
    return value;
  }

  double amount(std::size_t i, const char* what) const {
    double value = 0;
    const std::string_view word = words_[i];
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size() || !(value >= 0) || !(value <= 1e300))
      throw error(fmt::format("{} must be a number >= 0, not '{:.40}'", what, word));
    return value;
  }

  ConfigError error(const std::string& problem) const { return ConfigError(where_, "", problem); }

 private:
  std::istream& in_;
  Location where_;
  std::string line_;
  std::vector<std::string_view> words_;
};

/// By how much to multiply numbers for them to be whole and small enough.
double scale_of(const std::vector<double>& numbers) {
  double total = 0;
  bool whole = true;
  for (const double number : numbers) {
    total += number;
    whole &= number == std::floor(number);
  }
  return total == 0 || (whole && total <= kLargestTotal) ? 1 : kLargestTotal / total;
}

/// Small weights and costs must not become nothing.
long scaled(double number, double scale) { return number > 0 ? std::max(1L, std::lround(number * scale)) : 0; }

}  // namespace

Hypergraph read_patoh(std::istream& in, const std::string& name) {
  NumberLines lines(in, name);
  if (!lines.next()) throw lines.error("is empty; the first line must be BASE VERTICES NETS PINS [SCHEME]");
  if (lines.size() < 4 || lines.size() > 6)
    throw lines.error(
        fmt::format("the first line has {} numbers; it must be BASE VERTICES NETS PINS [SCHEME]", lines.size()));
  const long base = lines.whole(0, "the base", 0, 1);
  const long vertices = lines.whole(1, "the number of vertices", 1, kMostVertices);
  const long nets = lines.whole(2, "the number of nets", 0, kMostVertices);
  const long pins = lines.whole(3, "the number of pins", 0, 10 * kMostVertices);
  const long scheme = lines.size() > 4 ? lines.whole(4, "the weight scheme", 0, 3) : 0;
  if (lines.size() > 5 && lines.whole(5, "the number of constraints", 1, 1) != 1)
    throw lines.error("one constraint only");

  struct Net {
    double cost;
    std::vector<int> pins;
  };
  std::vector<Net> read;
  long found = 0;
  for (long n = 0; n < nets; ++n) {
    if (!lines.next()) throw lines.error(fmt::format("ends after {} of {} nets", n, nets));
    Net net{scheme >= 2 ? lines.amount(0, "a net's cost") : 1, {}};
    for (std::size_t i = scheme >= 2 ? 1 : 0; i < lines.size(); ++i)
      net.pins.push_back(static_cast<int>(lines.whole(i, "a pin", base, base + vertices - 1) - base));
    std::vector<int> sorted = net.pins;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw lines.error(fmt::format("vertex {} is twice in this net", *twice + base));
    found += static_cast<long>(net.pins.size());
    if (found > pins) throw lines.error(fmt::format("there are more than the {} pins that the first line says", pins));
    read.push_back(std::move(net));
  }
  if (found != pins) throw lines.error(fmt::format("there are {} pins, but the first line says {}", found, pins));

  Hypergraph graph;
  if (scheme == 1 || scheme == 3) {
    while (graph.vertices() < vertices) {
      if (!lines.next())
        throw lines.error(fmt::format("ends after the weights of {} of {} vertices", graph.vertices(), vertices));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (graph.vertices() == vertices)
          throw lines.error(fmt::format("has weights of more than {} vertices", vertices));
        graph.add_vertex(lines.amount(i, "a vertex's weight"));
      }
    }
  } else {
    for (long v = 0; v < vertices; ++v) graph.add_vertex(1);
  }
  if (lines.next()) throw lines.error("goes on after the last number that the first line announces");
  for (const Net& net : read) graph.add_net(net.cost, net.pins);
  return graph;
}

Hypergraph load_patoh(const std::filesystem::path& file) {
  std::istringstream in(read_input_file(file));
  return read_patoh(in, file.string());
}

void write_patoh(std::ostream& out, const Hypergraph& graph) {
  std::vector<double> costs, weights;
  for (int n = 0; n < graph.nets(); ++n) costs.push_back(graph.cost(n));
  for (int v = 0; v < graph.vertices(); ++v) weights.push_back(graph.weight(v));
  const double cost_scale = scale_of(costs), weight_scale = scale_of(weights);
  if (cost_scale != 1) out << fmt::format("% costs are multiplied by {} and rounded\n", cost_scale);
  if (weight_scale != 1) out << fmt::format("% weights are multiplied by {} and rounded\n", weight_scale);
  out << fmt::format("0 {} {} {} 3\n", graph.vertices(), graph.nets(), graph.pin_count());
  for (int n = 0; n < graph.nets(); ++n) {
    out << scaled(graph.cost(n), cost_scale);
    for (const int pin : graph.pins(n)) out << ' ' << pin;
    out << '\n';
  }
  for (int v = 0; v < graph.vertices(); ++v) out << (v > 0 ? " " : "") << scaled(graph.weight(v), weight_scale);
  out << '\n';
}

Partition read_partition(std::istream& in, const std::string& name, int vertices, int parts) {
  NumberLines lines(in, name);
  Partition out{parts, {}};
  while (lines.next())
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (out.part_of.size() == static_cast<std::size_t>(vertices))
        throw lines.error(fmt::format("names more vertices than the {} that there are", vertices));
      out.part_of.push_back(
          static_cast<int>(lines.whole(i, fmt::format("the part of vertex {}", out.part_of.size()).c_str(), 0,
                                       (parts > 0 ? parts : kMostParts) - 1)));
    }
  if (out.part_of.size() < static_cast<std::size_t>(vertices))
    throw lines.error(fmt::format("has parts for {} vertices, but there are {}: vertex {} is the first without one",
                                  out.part_of.size(), vertices, out.part_of.size()));
  if (parts == 0) out.parts = *std::max_element(out.part_of.begin(), out.part_of.end()) + 1;
  return out;
}

Partition load_partition(const std::filesystem::path& file, int vertices, int parts) {
  std::istringstream in(read_input_file(file));
  return read_partition(in, file.string(), vertices, parts);
}

void write_partition(std::ostream& out, const Partition& partition) {
  for (const int part : partition.part_of) out << part << '\n';
}

}  // namespace epocast
