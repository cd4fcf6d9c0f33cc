#pragma once
// One stage of a training step: its ranks, its queues, and the program that all of them run.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/step/exchange.hpp"

namespace epocast {

/// One event on all devices of a stage, lane by lane. Where stages have equally many replicas, these do the same as
/// their counterparts, and one task stands for all of them: a single lane. Otherwise each replica has tasks of its own,
/// as the next stage's replicas wait for different ones of them.
using Lanes = std::vector<TaskId>;

/// What a pass is called, and how it is served.
struct PassName {
  Name operation;
  Name chunk;  ///< of layers; empty: every layer's part is a task of its own, named after the layer
  int micro_batch = -1;
  std::optional<int> priority = {};
};

/// Writes what a stage computes, in program order. Layers' times are added up to one task as far as nobody looks in
/// between.
class StageWriter {
 public:
  struct Lane {
    GroupId devices{};
    QueueId compute{};
    std::string suffix;  ///< of names
  };

  /// `lanes`: one for every device, not a single one.
  StageWriter(CyclicTaskGraph& graph, std::string name, StageRanks ranks, bool lanes, Discipline discipline,
              const CollectiveSettings& collective);

  CyclicTaskGraph& graph() const { return graph_; }
  const StageRanks& ranks() const { return ranks_; }
  GroupId group() const { return group_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  /// A queue of all ranks for communication, made when it is first asked for.
  QueueId communication(const std::string& name, Discipline discipline = Discipline::fifo);

  /// Something that all places of the stage share: what `make` returns, a shared pointer, when it is first asked for.
  template <class T, class Make>
  T& common(Make make) {
    if (!common_) common_ = make();
    return *static_cast<T*>(common_.get());
  }

  /// A collective of each team along an axis, carried out as the study says, or by another algorithm: the usual one
  /// where the study's cannot.
  TaskId collective(CollectiveOp op, Axis axis, QueueId queue, Bytes bytes, const Label& label,
                    std::optional<CollectiveAlgorithm> algorithm = {});
  /// The same, as a thread carries it out that the program posts it to: no earlier than this point of the program.
  /// `blocking`: the program waits for it.
  TaskId post(CollectiveOp op, std::optional<CollectiveAlgorithm> algorithm, Axis axis, QueueId queue, Bytes bytes,
              const Label& label, bool blocking);

  void begin(PassName pass);
  /// The next part of a layer's pass. `operation`: where it is not the pass's.
  void compute(const DeviceTime& time, const std::string& layer, const char* operation = nullptr);
  /// What the ranks that share the layer must send each other before they go on.
  void exchange(const Exchange& exchange, const std::string& layer);
  /// The same, but the program goes on meanwhile, and waits for it where await() is told.
  std::vector<TaskId> start(const std::vector<Exchange>& exchanges, const std::string& layer);
  void await(const std::vector<TaskId>& tasks, const std::string& layer);
  /// The next part of a layer's pass, during which blocks come that it is about, see LayerExchanges. All but one of
  /// them are computed while the others come: as long as a block takes, or its messages if these take longer.
  void compute_during(const std::vector<Exchange>& exchanges, const DeviceTime& time, const std::string& layer,
                      const char* operation = nullptr);
  /// What has been written ends here: the last task up to this point. `name` is that of what was cut off.
  Lanes cut(const std::string& name);
  /// The task that the program goes on with from here. Ask for it with at() when the program is complete.
  std::size_t mark(const std::string& name);
  /// First and last of the pass.
  std::pair<Lanes, Lanes> end(const std::string& rest);

  /// A computation beside layers' passes, such as an update. Its name gets the lane's suffix.
  Lanes task(const DeviceTime& time, const Label& label, std::optional<int> priority = {});
  /// The same in the middle of a pass, behind what has been written of it, the last piece of which is called `name`.
  Lanes task_behind(const std::string& name, const DeviceTime& time, const Label& label);
  /// A moment of all ranks, that takes no time and has no place in the program's order.
  TaskId moment(const Label& label) { return graph_.compute_for(group_, QueueId::none, Seconds(0), label); }
  /// Whether passes run in the order in which they are written.
  bool in_program_order() const { return ordered_; }
  /// What comes next in the program waits for this.
  void wait(TaskId before, int lag = 0);

  /// Closes the loop of iterations. Call it once, last.
  void close();
  /// What the program begins with. REQUIRES: something has been written.
  const Lanes& first() const { return oldest_; }
  /// REQUIRES: closed. The marked task, and whether it is the next iteration's.
  const std::pair<Lanes, int>& at(std::size_t mark) const { return marks_[mark]; }

 private:
  std::optional<TaskId> send(const Exchange& exchange, const std::string& layer, const Lanes& before);
  Lanes before_next() const;
  Lanes write(const DeviceTime& time, const Label& label, const std::string& behind_suffix,
              std::optional<int> priority);
  void comes(const Lanes& tasks);
  void flush(const std::string& name);

  CyclicTaskGraph& graph_;
  std::string name_;
  StageRanks ranks_;
  CollectiveSettings collective_;
  bool ordered_;
  GroupId group_{};
  std::vector<Lane> lanes_;
  std::map<std::string, QueueId> communication_;
  std::shared_ptr<void> common_;

  PassName pass_;
  Lanes first_, last_;                ///< of the pass
  Lanes newest_, oldest_;             ///< of the program
  std::vector<TaskId> posted_first_;  ///< before anything was computed
  bool cut_ = false;                  ///< the pass is in several pieces
  bool is_pending_ = false;
  DeviceTime pending_;                           ///< not written yet
  std::vector<std::pair<TaskId, int>> awaited_;  ///< by what is written next
  std::vector<std::pair<Lanes, int>> marks_;
  std::size_t unmet_ = 0;  ///< the first mark that nothing follows yet
};

}  // namespace epocast
