#include "strategies/partitioners/class_counts.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>

namespace epocast {

ClassCounts::ClassCounts(const VertexClasses& classes, int parts, CountObjective objective, std::vector<double> gather)
    : classes_(&classes), parts_(parts), objective_(objective), gather_(std::move(gather)) {
  const std::size_t n = classes.classes.size(), families = classes.families.size();
  const auto p = static_cast<std::size_t>(parts);
  gather_.resize(n);
  read_in_.resize(n);
  source_of_.resize(n);
  neighbours_.resize(n);
  count_.resize(n * p);
  place_in_part_.resize(n * p);
  place_in_class_.resize(n * p);
  readers_.resize(families * p);
  spread_.resize(families);
  at_home_.resize(families);
  family_cost_.resize(families);
  load_.resize(p);
  classes_in_.resize(p);
  parts_with_.resize(n);
  for (std::size_t f = 0; f < families; ++f) {
    const NetFamily& family = classes.families[f];
    for (const int c : family.all) read_in_[static_cast<std::size_t>(c)].push_back(static_cast<int>(f));
    if (family.source >= 0) source_of_[static_cast<std::size_t>(family.source)].push_back(static_cast<int>(f));
    // A few neighbours are enough to look at.
    const std::size_t few = std::min<std::size_t>(family.all.size(), 64);
    for (std::size_t i = 0; i < few; ++i) {
      if (family.source >= 0) {
        neighbours_[static_cast<std::size_t>(family.source)].push_back(family.all[i]);
        neighbours_[static_cast<std::size_t>(family.all[i])].push_back(family.source);
      }
      if (i > 0) {
        neighbours_[static_cast<std::size_t>(family.all[i])].push_back(family.all[i - 1]);
        neighbours_[static_cast<std::size_t>(family.all[i - 1])].push_back(family.all[i]);
      }
    }
  }
  for (std::size_t c = 0; c < n; ++c) {
    const auto size = static_cast<int>(classes.classes[c].vertices.size());
    count_[c * p] = size;
    load_[0] += size * classes.classes[c].weight;
    set_present(static_cast<int>(c), 0, true);
    for (const int f : read_in_[c]) readers_[static_cast<std::size_t>(f) * p] += size;
  }
  for (std::size_t f = 0; f < families; ++f) {
    const NetFamily& family = classes.families[f];
    spread_[f] = family.all.empty() ? 0 : 1;
    if (family.source >= 0 && spread_[f] > 0)
      at_home_[f] = static_cast<long>(classes.classes[static_cast<std::size_t>(family.source)].vertices.size());
    family_cost_[f] = family_cost(static_cast<int>(f));
    cost_ += family_cost_[f];
  }
}

double ClassCounts::family_cost(int f) const {
  const auto i = static_cast<std::size_t>(f);
  const NetFamily& family = classes_->families[i];
  if (spread_[i] == 0) return 0;
  if (family.source < 0)
    return family.cost * (objective_ == CountObjective::cut_net ? (spread_[i] > 1 ? 1 : 0) : spread_[i] - 1);
  const auto members = static_cast<double>(classes_->classes[static_cast<std::size_t>(family.source)].vertices.size());
  const auto home = static_cast<double>(at_home_[i]);
  switch (objective_) {
    case CountObjective::connectivity: return family.cost * (members * spread_[i] - home);
    case CountObjective::cut_net: return family.cost * (members - (spread_[i] == 1 ? home : 0));
    case CountObjective::gather_broadcast: break;
  }
  // The best part for the layer to be put together in.
  double best = std::numeric_limits<double>::infinity();
  for (const int root : parts_with_[static_cast<std::size_t>(family.source)]) {
    const double away = members - count(family.source, root);
    const double others = spread_[i] - (readers_[at(f, root)] > 0 ? 1 : 0);
    best = std::min(best, gather_[static_cast<std::size_t>(family.source)] * away + family.cost * members * others);
  }
  return best;
}

void ClassCounts::set_present(int c, int part, bool present) {
  std::vector<int>& in_part = classes_in_[static_cast<std::size_t>(part)];
  std::vector<int>& with_class = parts_with_[static_cast<std::size_t>(c)];
  if (present) {
    place_in_part_[at(c, part)] = static_cast<int>(in_part.size());
    in_part.push_back(c);
    place_in_class_[at(c, part)] = static_cast<int>(with_class.size());
    with_class.push_back(part);
    return;
  }
  const int i = place_in_part_[at(c, part)], j = place_in_class_[at(c, part)];
  in_part[static_cast<std::size_t>(i)] = in_part.back();
  place_in_part_[at(in_part.back(), part)] = i;
  in_part.pop_back();
  with_class[static_cast<std::size_t>(j)] = with_class.back();
  place_in_class_[at(c, with_class.back())] = j;
  with_class.pop_back();
}

void ClassCounts::move(int c, int number, int from, int to) {
  assert(number > 0 && number <= count(c, from) && from != to);
  const auto i = static_cast<std::size_t>(c);
  for (const int f : read_in_[i]) {
    const auto k = static_cast<std::size_t>(f);
    const int source = classes_->families[k].source;
    if ((readers_[at(f, from)] -= number) == 0) {
      --spread_[k];
      if (source >= 0) at_home_[k] -= count(source, from);
    }
    if ((readers_[at(f, to)] += number) == number) {
      ++spread_[k];
      if (source >= 0) at_home_[k] += count(source, to);
    }
  }
  for (const int f : source_of_[i])
    at_home_[static_cast<std::size_t>(f)] +=
        number * ((readers_[at(f, to)] > 0 ? 1 : 0) - (readers_[at(f, from)] > 0 ? 1 : 0));
  if ((count_[at(c, from)] -= number) == 0) set_present(c, from, false);
  if ((count_[at(c, to)] += number) == number) set_present(c, to, true);
  load_[static_cast<std::size_t>(from)] -= number * weight(c);
  load_[static_cast<std::size_t>(to)] += number * weight(c);
  for (const auto* families : {&read_in_[i], &source_of_[i]})
    for (const int f : *families) {
      double& old = family_cost_[static_cast<std::size_t>(f)];
      const double now = family_cost(f);
      cost_ += now - old;
      old = now;
    }
}

Partition ClassCounts::partition() const {
  Partition out{parts_, {}};
  std::size_t vertices = 0;
  for (const VertexClass& c : classes_->classes) vertices += c.vertices.size();
  out.part_of.resize(vertices);
  for (int c = 0; c < classes(); ++c) {
    auto vertex = classes_->classes[static_cast<std::size_t>(c)].vertices.begin();
    for (int part = 0; part < parts_; ++part)
      for (int i = 0; i < count(c, part); ++i) out.part_of[static_cast<std::size_t>(*vertex++)] = part;
  }
  return out;
}

void ClassCounts::assign(const Partition& partition) {
  for (int c = 0; c < classes(); ++c) {
    std::vector<int> wanted(static_cast<std::size_t>(parts_));
    for (const int v : classes_->classes[static_cast<std::size_t>(c)].vertices)
      ++wanted[static_cast<std::size_t>(partition.part_of[static_cast<std::size_t>(v)])];
    for (int to = 0, from = 0; to < parts_; ++to)
      while (count(c, to) < wanted[static_cast<std::size_t>(to)]) {
        while (count(c, from) <= wanted[static_cast<std::size_t>(from)]) ++from;
        move(c,
             std::min(wanted[static_cast<std::size_t>(to)] - count(c, to),
                      count(c, from) - wanted[static_cast<std::size_t>(from)]),
             from, to);
      }
  }
}

}  // namespace epocast
