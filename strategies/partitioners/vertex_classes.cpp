#include "strategies/partitioners/vertex_classes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "sim/mix_bits.hpp"

namespace epocast {
namespace {

std::uint64_t bits(double value) { return mix_bits(std::bit_cast<std::uint64_t>(value)); }

/// Groups vertices by colour, or each by itself where its colour has been taken apart.
std::vector<int> number_classes(const Hypergraph& graph, const std::vector<std::uint64_t>& colour,
                                const std::vector<bool>& alone, std::vector<VertexClass>& classes) {
  std::unordered_map<std::uint64_t, int> number;
  std::vector<int> class_of(colour.size());
  classes.clear();
  for (std::size_t v = 0; v < colour.size(); ++v) {
    int& of = class_of[v];
    of = static_cast<int>(classes.size());
    if (!alone[v]) of = number.emplace(colour[v], of).first->second;
    if (of == static_cast<int>(classes.size())) classes.push_back({graph.weight(static_cast<int>(v)), {}});
    classes[static_cast<std::size_t>(of)].vertices.push_back(static_cast<int>(v));
  }
  return class_of;
}

/// What a net holds: whole classes, and at most one vertex of a larger class. `bad`: classes it holds otherwise.
struct NetShape {
  std::vector<int> all;
  int source = -1;
  int member = -1;
  std::vector<int> bad;
};

NetShape shape_of(const Hypergraph& graph, int net, const std::vector<VertexClass>& classes,
                  const std::vector<int>& class_of) {
  std::vector<int> of;
  for (const int pin : graph.pins(net)) of.push_back(class_of[static_cast<std::size_t>(pin)]);
  std::sort(of.begin(), of.end());
  NetShape shape;
  for (std::size_t begin = 0, end = 0; begin < of.size(); begin = end) {
    while (end < of.size() && of[end] == of[begin]) ++end;
    const int c = of[begin];
    if (end - begin == classes[static_cast<std::size_t>(c)].vertices.size()) {
      shape.all.push_back(c);
    } else if (end - begin == 1 && shape.source < 0) {
      shape.source = c;
    } else {
      shape.bad.push_back(c);
    }
  }
  if (!shape.bad.empty() && shape.source >= 0) shape.bad.push_back(shape.source);
  if (shape.source >= 0)
    for (const int pin : graph.pins(net))
      if (class_of[static_cast<std::size_t>(pin)] == shape.source) shape.member = pin;
  return shape;
}

/// Families of all nets, or the classes that do not fit any.
std::vector<int> make_families(const Hypergraph& graph, const std::vector<int>& class_of, VertexClasses& out) {
  out.families.clear();
  std::vector<int> misfits;
  using Key = std::tuple<int, std::vector<int>, double>;
  std::map<Key, std::map<int, int>> members;  // nets of each vertex of the source class
  for (int net = 0; net < graph.nets(); ++net) {
    NetShape shape = shape_of(graph, net, out.classes, class_of);
    misfits.insert(misfits.end(), shape.bad.begin(), shape.bad.end());
    if (misfits.empty()) ++members[Key(shape.source, std::move(shape.all), graph.cost(net))][shape.member];
  }
  if (!misfits.empty()) return misfits;
  for (const auto& [key, nets] : members) {
    const auto& [source, all, cost] = key;
    const int each = nets.begin()->second;
    const bool same = std::all_of(nets.begin(), nets.end(), [&](const auto& entry) { return entry.second == each; });
    if (source >= 0 && (!same || nets.size() != out.classes[static_cast<std::size_t>(source)].vertices.size()))
      misfits.push_back(source);
    out.families.push_back({cost * each, source, all});
  }
  return misfits;
}

}  // namespace

std::vector<std::uint64_t> vertex_colours(const Hypergraph& graph) {
  const auto vertices = static_cast<std::size_t>(graph.vertices());
  std::vector<std::uint64_t> colour(vertices), next(vertices);
  for (std::size_t v = 0; v < vertices; ++v) colour[v] = bits(graph.weight(static_cast<int>(v)));
  for (std::size_t known = 0;;) {
    for (std::size_t v = 0; v < vertices; ++v) next[v] = mix_bits(colour[v]);
    for (int net = 0; net < graph.nets(); ++net) {
      std::uint64_t sum = bits(graph.cost(net));
      for (const int pin : graph.pins(net)) sum += mix_bits(colour[static_cast<std::size_t>(pin)]);
      for (const int pin : graph.pins(net))
        next[static_cast<std::size_t>(pin)] += mix_bits(sum ^ colour[static_cast<std::size_t>(pin)]);
    }
    colour.swap(next);
    const std::size_t colours = std::unordered_set<std::uint64_t>(colour.begin(), colour.end()).size();
    if (colours == known) return colour;
    known = colours;
  }
}

VertexClasses find_classes(const Hypergraph& graph) {
  const std::vector<std::uint64_t> colour = vertex_colours(graph);  // later steps survive collisions
  std::vector<bool> alone(colour.size());
  VertexClasses out;
  while (true) {
    const std::vector<int> class_of = number_classes(graph, colour, alone, out.classes);
    const std::vector<int> misfits = make_families(graph, class_of, out);
    if (misfits.empty()) return out;
    for (const int c : misfits)
      for (const int v : out.classes[static_cast<std::size_t>(c)].vertices) alone[static_cast<std::size_t>(v)] = true;
  }
}

}  // namespace epocast
