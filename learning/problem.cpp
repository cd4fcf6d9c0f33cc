#include "learning/problem.hpp"

#include <stdexcept>

#include "sim/config.hpp"

namespace epocast::learning {

const std::vector<ProblemInfo>& problems() {
  static const std::vector<ProblemInfo> all{
      {"quadratic",
       "sum of curvature x parameter^2 / 2; each sample's gradient has normal noise of its own",
       {{"size", 10, 1, 1e6, true, "parameters, if no spectrum is given: curvatures from 1 down to 1 / condition"},
        {"condition", 10, 1, 1e9, false, "largest curvature over the smallest"},
        {"noise", 1, 0, 1e6, false, "standard deviation of one sample's gradient, in each direction"},
        {"distance", 1, 0, 1e6, false, "of each parameter from the optimum, in the beginning"},
        {"samples", 1000, 1, 1e9, true, "in an epoch; all samples are new ones"}}},
      {"logistic",
       "logistic regression on two normal distributions",
       {{"size", 20, 1, 1e5, true, "features"},
        {"separation", 2, 0, 100, false, "distance of the two means, in standard deviations"},
        {"decay", 1e-3, 0, 10, false, "weight of half the squared parameters in the loss"},
        {"samples", 10000, 10, 1e7, true, "to train with; a fifth as many to test"}}},
      {"digits",
       "a perceptron with a hidden layer on digits that are drawn: strokes, distortions, noise",
       {{"side", 16, 8, 64, true, "pixels of an image's side"},
        {"hidden", 188, 1, 4096, true, "hidden units; 188 make 50,206 parameters with 16 x 16 pixels"},
        {"noise", 0.25, 0, 10, false, "standard deviation of a pixel; strokes are 1"},
        {"distortion", 0.2, 0, 1, false, "how far digits are turned, sheared, scaled and moved"},
        {"samples", 10000, 10, 1e6, true, "to train with; a fifth as many to test"}}},
      {"phantoms",
       "a small convolutional network that takes the noise out of randomised Shepp-Logan phantoms",
       {{"side", 16, 8, 256, true, "pixels of an image's side"},
        {"channels", 4, 1, 64, true, "of the hidden layers"},
        {"layers", 3, 2, 16, true, "convolutions of 3 x 3, if there are no blocks"},
        {"blocks", 0, 0, 64, true, "residual blocks of two convolutions, between a first and a last one"},
        {"noise", 0.1, 0, 10, false, "standard deviation of a pixel; images are 0 to 1"},
        {"samples", 160, 10, 1e6, true, "to train with; a fifth as many to test"}}}};
  return all;
}

std::unique_ptr<Problem> make_problem(const std::string& name, const ProblemOptions& options, std::uint64_t seed) {
  if (name == "quadratic") return make_quadratic(options, seed);
  if (name == "logistic") return make_logistic(options, seed);
  if (name == "digits") return make_digits(options, seed);
  if (name == "phantoms") return make_phantoms(options, seed);
  std::vector<std::string> names;
  for (const ProblemInfo& problem : problems()) names.push_back(problem.name);
  throw std::invalid_argument("unknown problem '" + name + "'" + name_hint(name, names));
}

}  // namespace epocast::learning
