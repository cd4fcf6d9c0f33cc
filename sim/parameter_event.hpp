#pragma once
// What may happen to parameters; see parameter_log.hpp.

#include <cstdint>

namespace epocast {

struct ParameterEvent {
  enum Kind : std::uint8_t {
    read,        ///< a worker begins to get the piece as the server, or the shared memory, has it
    gradient,    ///< a worker computes a gradient from what it has read: its first backward pass begins, or a stage's
    step,        ///< a worker has updated its own parameters, or all have the same new ones
    prepare,     ///< a worker has made what it commits out of its parameters or gradients
    commit,      ///< a server has applied a worker's contribution
    accumulate,  ///< a server has added a worker's contribution to those of its round
    close,       ///< a server begins to end the round: nothing more is added to it
    write,       ///< a server has ended the round
    reduce,      ///< all workers have the mean of what they had
    mix,         ///< a worker takes the mean for its own
    send,        ///< a worker begins to send its parameters to a neighbour
    answer,      ///< the neighbour begins to send its own back
    merge_sent,  ///< the neighbour has averaged its own with what came
    merge,       ///< the worker has averaged its own with the answer
  };
  static constexpr std::int32_t kAll = -1;

  double date = 0;             ///< s from the start of the phase
  std::int64_t iteration = 0;  ///< of the graph
  Kind kind = read;
  std::int32_t rank = kAll;     ///< worker
  std::int32_t piece = kAll;    ///< index into ParameterLog::pieces
  std::int32_t partner = kAll;  ///< worker at the other end of send, answer, merge_sent and merge
};

const char* to_string(ParameterEvent::Kind kind);

}  // namespace epocast
