#pragma once
// Something small to learn, drawn by the program itself: no data files.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace epocast::learning {

/// Parameters, or a gradient.
using Values = std::vector<double>;

struct Evaluation {
  double loss = 0;                      ///< of the training set, or of a fixed part of it
  std::optional<double> accuracy = {};  ///< on samples not trained with: share of right answers 0..1, or PSNR [dB]
};

class Problem {
 public:
  virtual ~Problem() = default;
  /// How many parameters there are.
  virtual std::size_t size() const = 0;
  /// Samples in an epoch.
  virtual std::int64_t samples() const = 0;
  virtual Values initial() const = 0;
  /// The mean gradient of the loss over the samples at these positions of training (0, 1, 2, ...: an epoch has
  /// samples() of them, each in an order of its own) at the point `at`. REQUIRES: at and out have size() values; at
  /// least one position. Not safe for use by several threads: it keeps working memory.
  virtual void gradient(std::span<const double> at, std::span<const std::int64_t> positions, std::span<double> out) = 0;
  /// The same where weights have changed since the forward pass: errors travel back through those of `backward`.
  /// Without an override, for problems of one layer, they travel through none.
  virtual void gradient_of_passes(std::span<const double> forward, std::span<const double> /*backward*/,
                                  std::span<const std::int64_t> positions, std::span<double> out) {
    gradient(forward, positions, out);
  }
  virtual Evaluation evaluate(std::span<const double> at) = 0;
  /// What `accuracy` is called: "accuracy", "psnr", or "" for none.
  virtual std::string accuracy_name() const { return "accuracy"; }
};

/// What a user may change about a problem, by name; what is left out has the problem's default.
struct ProblemOptions {
  std::map<std::string, double> numbers;
  std::vector<double> spectrum;  ///< of the quadratic

  double get(const std::string& name, double fallback) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? fallback : found->second;
  }
};

/// One option of a problem.
struct ProblemOption {
  std::string name;
  double fallback = 0, min = 0, max = 0;
  bool whole = true;  ///< numbers only
  std::string description;
};

struct ProblemInfo {
  std::string name;
  std::string description;
  std::vector<ProblemOption> options;
};

/// All problems with their options.
const std::vector<ProblemInfo>& problems();

/// Throws std::invalid_argument for an unknown name, with the valid ones. REQUIRES: options within their ranges.
std::unique_ptr<Problem> make_problem(const std::string& name, const ProblemOptions& options, std::uint64_t seed);

std::unique_ptr<Problem> make_quadratic(const ProblemOptions& options, std::uint64_t seed);
std::unique_ptr<Problem> make_logistic(const ProblemOptions& options, std::uint64_t seed);
std::unique_ptr<Problem> make_digits(const ProblemOptions& options, std::uint64_t seed);
std::unique_ptr<Problem> make_phantoms(const ProblemOptions& options, std::uint64_t seed);

}  // namespace epocast::learning
