#pragma once
// Scenarios in which one number of the study is another.

#include <optional>
#include <string>
#include <string_view>

#include "experiments/study.hpp"

namespace epocast {

/// What a study has at a dotted key, through maps: "compute.scale". Nothing if it leaves it out.
std::optional<ConfigNode> node_at(const ConfigNode& config, std::string_view key);

/// The scenario with a number of its study, `config`, times a factor; its unit stays: "60 d" times 1.1 is "66 d".
/// `otherwise`: what the number is where the study leaves it out. Nothing where there is no number, or it is 0.
std::optional<Scenario> with_scaled(const Scenario& scenario, const ConfigNode& config, const std::string& key,
                                    double factor, std::optional<double> otherwise);

/// The scenario with another value of a key.
Scenario with_setting(const Scenario& scenario, const std::string& key, const std::string& value);

}  // namespace epocast
