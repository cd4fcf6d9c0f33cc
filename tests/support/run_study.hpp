#pragma once
// A study from its text to its result.

#include <string>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::testing {

/// Of the first scenario of a study, simulated in a child.
inline ScenarioResult run_study(const std::string& text, const RunOptions& options = {}) {
  return deserialize(in_child([&] {
    return serialize(run_scenario(parse_study(text, "study.yaml").scenarios.front(), builtin_registries(), options));
  }));
}

}  // namespace epocast::testing
