#pragma once
// Bytes by sender, receiver and link.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/flow_symmetry.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// A link, and how long it needs for what it has carried.
struct LinkLoad {
  int link = -1;  ///< -1: none has carried anything
  double seconds = 0;
};

/// Counts what crossed the network, message by message, along its routes.
class TrafficCounter {
 public:
  explicit TrafficCounter(SimEngine& engine)
      : engine_(engine), sent_(engine.host_count()), received_(engine.host_count()), on_link_(engine.link_count()) {}

  /// From now on also who sends how much to whom.
  void record_pairs() { records_pairs_ = true; }

  void count(int from, int to, double bytes) {
    count_off_links(from, to, bytes);
    for (const int link : engine_.route(from, to).links) on_link_[link] += bytes;
  }

  /// The same for what did not go over the platform's links.
  void count_off_links(int from, int to, double bytes) {
    sent_[from] += bytes;
    received_[to] += bytes;
    total_ += bytes;
    if (records_pairs_) pairs_[{from, to}] += bytes;
  }

  /// The same for a set of flows that was started with so many bytes; counted when spread() is called.
  void count_set(std::uint32_t set, double bytes) { at(on_links_, set) += bytes; }
  void count_set_off_links(std::uint32_t set, double bytes) { at(off_links_, set) += bytes; }
  /// The same for many, by set.
  void count_sets(const std::vector<double>& on_links, const std::vector<double>& off_links) {
    for (std::uint32_t set = 0; set < on_links.size(); ++set) count_set(set, on_links[set]);
    for (std::uint32_t set = 0; set < off_links.size(); ++set) count_set_off_links(set, off_links[set]);
  }
  void spread(const FlowSymmetry& sets) {
    for (std::uint32_t set = 0; set < sets.size(); ++set)
      for (const SetFlow& flow : sets.flows(set)) {
        if (const double bytes = at(off_links_, set); bytes > 0)
          count_off_links(flow.from, flow.to, bytes * flow.bytes);
        if (const double bytes = at(on_links_, set); bytes > 0 && flow.from != flow.to)
          count(flow.from, flow.to, bytes * flow.bytes);
      }
    on_links_.clear();
    off_links_.clear();
  }

  /// Of count_set() and count_set_off_links(), until they are spread [B].
  const std::vector<double>& on_links_by_set() const { return on_links_; }
  const std::vector<double>& off_links_by_set() const { return off_links_; }

  const std::vector<double>& sent() const { return sent_; }          ///< by host [B]
  const std::vector<double>& received() const { return received_; }  ///< by host [B]
  const std::vector<double>& on_link() const { return on_link_; }    ///< by link [B]
  /// By sender and receiver, both hosts [B]; empty unless recorded.
  const std::map<std::pair<int, int>, double>& pairs() const { return pairs_; }
  double total() const { return total_; }
  /// The first of those that need longest, at the bandwidths that `bandwidth(link)` says [B/s]. A link that bounds each
  /// flow alone needs no time for their sum.
  template <class Bandwidth>
  LinkLoad busiest_link(Bandwidth bandwidth) const {
    LinkLoad busiest;
    for (int link = 0; link < engine_.link_count(); ++link) {
      if (engine_.link_sharing(link) == LinkSharing::kFatpipe) continue;
      if (const double seconds = on_link_[link] / bandwidth(link); seconds > busiest.seconds) busiest = {link, seconds};
    }
    return busiest;
  }

 private:
  static double& at(std::vector<double>& by_set, std::uint32_t set) {
    if (set >= by_set.size()) by_set.resize(set + 1);
    return by_set[set];
  }

  SimEngine& engine_;
  std::vector<double> sent_, received_, on_link_;
  std::vector<double> on_links_, off_links_;  ///< by set [B]
  double total_ = 0;
  bool records_pairs_ = false;
  std::map<std::pair<int, int>, double> pairs_;
};

}  // namespace epocast
