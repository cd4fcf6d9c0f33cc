#pragma once
// Collectives that take the time of a fitted network calibration instead of the platform's links, and messages that
// take no less than was measured where the calibration has `send`.
//
// Scope and limits: the machine, library and rank counts of the calibration; nothing else on the network. An operation
// that was not measured is derived where that is sound: an all-reduce is a reduce-scatter and an all-gather
// (Rabenseifner; Thakur, Rabenseifner, Gropp 2005), so each of those takes half of its time, and it the sum of theirs.
// Others are an error. caveats() says what is derived, and which sizes and rank counts lie outside what was measured.
// Validation: docs/calibration.md, tests/unit/measured_collectives_test.cpp.

#include <optional>
#include <string>
#include <vector>

#include "costmodels/network_calibration.hpp"
#include "sim/cluster.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Which groups of ranks a calibration holds for.
enum class CollectiveScope { everywhere, within_node, across_nodes };

class MeasuredCollectives {
 public:
  /// `name` and `place` are for messages. `library` may be empty if each operation was measured with one only.
  MeasuredCollectives(NetworkCalibration calibration, std::string name, std::string library, CollectiveScope scope,
                      ConfigNode place);

  CollectiveScope scope() const { return scope_; }
  bool has_collectives() const;
  bool was_measured(CollectiveOp op) const { return find(op) != nullptr; }
  /// Whether both have times of the same.
  bool excludes(const MeasuredCollectives& other) const;

  /// Time of an operation as sim/collective.hpp counts its bytes. Throws ConfigError at the study's key if the
  /// calibration has no such operation and none that it follows from.
  Seconds time(CollectiveOp op, int ranks, double bytes, int nodes = 1) const;

  /// The time of a collective of a graph; nothing if its group is out of scope. Throws as the other.
  std::optional<Seconds> time(const Collective& collective, const Group& group, const Cluster& cluster) const;

  /// The time of a message that is alone, within a node or from one to another; nothing if it is out of scope or was
  /// not measured. Throws as the others.
  std::optional<Seconds> message_time(double bytes, bool within_node) const;

  /// What of such a graph's times is derived or extrapolated; usually empty.
  std::vector<std::string> caveats(const CyclicTaskGraph& graph, const Cluster& cluster) const;

 private:
  /// The fits whose times add up to an operation's, and the factor on their sum.
  struct Source {
    std::vector<const NetworkFit*> fits;
    double share = 1;
  };
  const NetworkFit* find(CollectiveOp op) const;
  std::vector<std::string> message_caveats(const CyclicTaskGraph& graph) const;
  Source source(CollectiveOp op) const;
  bool in_scope(const Group& group, const Cluster& cluster) const;

  NetworkCalibration calibration_;
  std::string name_;
  std::string library_;
  CollectiveScope scope_;
  ConfigNode place_;
};

/// Reads `collective.calibration`: a name or path, `{name: .., library: .., where: within_node}`, or a list of such.
/// Throws ConfigError.
std::vector<MeasuredCollectives> read_measured_collectives(const ConfigNode& node,
                                                           const std::filesystem::path& data_dir);

}  // namespace epocast
