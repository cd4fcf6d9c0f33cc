#pragma once
// Bodies whose devices have programs of their own (multiple programs, multiple data): a partition of filters, degrees
// by operator, placed operations. Such a body writes the whole step, and says itself with which schedules it goes.

#include <memory>
#include <optional>
#include <string>

#include "sim/strategy.hpp"
#include "strategies/bodies/body.hpp"
#include "strategies/step/part.hpp"
#include "strategies/step/replica_teams.hpp"

namespace epocast {

/// What a composition says beside its body.
struct AroundBody {
  Mesh mesh;
  ReplicaTeams teams;                  ///< along its axes tensor and data
  std::optional<ConfigNode> schedule;  ///< with its options; the name may be absent
  Part synchronisation;

  /// Throws ConfigError if there is a schedule; `reason` says what is done instead.
  void refuse_schedule(const std::string& reason) const;
  /// Replicas sum each gradient as soon as it is there. Throws ConfigError for all but all-reduce without options.
  void check_synchronisation(const std::string& body) const;
};

class MpmdBody : public Body {
 public:
  std::string axis() const final { return "tensor"; }
  /// REQUIRES not to be called: there is no program that all devices run.
  DividedModel divide(DividedModel model, int parts, const ConfigNode& place) const final;
  /// The strategy that the composition is. Throws ConfigError for what does not go with the body.
  virtual std::unique_ptr<Strategy> step(const AroundBody& around) const = 0;
};

/// That of a strategy which such a step can be made into: `Step` has a constructor of options and an AroundBody.
template <class Step>
class BodyOfStep final : public MpmdBody {
 public:
  explicit BodyOfStep(const ConfigNode& options) : options_(options) {}
  std::unique_ptr<Strategy> step(const AroundBody& around) const override {
    return std::make_unique<Step>(options_, around);
  }

 private:
  ConfigNode options_;
};

/// The composition that `body` makes of a study's `strategy`. Throws ConfigError for parts that do not go together.
std::unique_ptr<Strategy> compose_mpmd(const MpmdBody& body, const std::string& name, const ConfigNode& options,
                                       const Mesh& mesh);

/// An entry for `list bodies`: that of the strategy, but for options of which other parts of a composition speak.
EntryInfo body_info(EntryInfo strategy, const std::string& name, const std::vector<std::string>& without);

}  // namespace epocast
