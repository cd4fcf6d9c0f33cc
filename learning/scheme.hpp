#pragma once
// What the events of a strategy's log do to parameters.

#include <string>
#include <vector>

namespace epocast::learning {

/// How a strategy trains. The log says who acts when; this says how.
struct Scheme {
  std::string strategy;  ///< as in a study: parameter_server, downpour, ...
  enum Family {
    synchronous,  ///< one set of parameters; a step applies the mean gradient of all workers
    server,       ///< workers send gradients; the server applies each, or the mean of a round
    averaging,    ///< workers send parameters; the server takes their mean, or mixes each into its own
    elastic,      ///< workers and centre attract each other
    replicas,     ///< workers average by a collective
    neighbours,   ///< workers average with neighbours
    pipeline,     ///< stages are updated one by one, while further batches are under way
  } family = synchronous;
  bool normalised = false;       ///< what is committed is divided by the gradients in it (Hermans 2017, eq. 4.1)
  bool adaptive_server = false;  ///< the server steps by Adam
  bool plain_server = false;     ///< the server has no momentum
  bool current_weights = false;  ///< a stage's backward pass goes through its weights as they have become meanwhile
};

/// The scheme of a strategy. Throws std::invalid_argument, with those that there are, if what it does to parameters is
/// not known.
Scheme scheme_of(const std::string& strategy);

/// Strategies that scheme_of() knows.
std::vector<std::string> schemes();

}  // namespace epocast::learning
