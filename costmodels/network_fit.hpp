#pragma once
// How long a collective takes, fitted to measured ones: alpha, beta and gamma, beta piecewise by message size.
//
//     time = steps alpha + wire bytes (beta(bytes) + share gamma) / speed(ranks), times exp(interpolated residual)
//
// steps, wire bytes and share are those of the ring (Thakur, Rabenseifner, Gropp 2005): for an all-reduce over p ranks
// 2 (p - 1), 2 (p - 1) / p bytes and 1/2; for reduce-scatter p - 1, (p - 1) / p bytes and 1; for all-gather the same
// and 0; for others one step per doubling, the bytes and 0. beta lies on a line between knots of ln bytes. An
// all-reduce alone cannot tell gamma from beta, so gamma is given, not fitted; without one it is contained in beta.
//
// Scope and limits: one operation of one library on one interconnect, all ranks starting together, nothing else on the
// network. Where groups of several nodes were measured, protocol_fit.hpp takes the place of the formula. `speed` is
// fitted for the rank counts measured, and interpolated among them. Far from measured points the residual vanishes.
// Validation: docs/calibration.md, tests/published/calibration_test.cpp (held-out points).

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costmodels/protocol_fit.hpp"
#include "costmodels/residual_interpolation.hpp"
#include "costmodels/robust_fit.hpp"
#include "sim/collective.hpp"

namespace epocast {

struct CollectiveTiming {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string library;
  int ranks = 2;
  double bytes = 0;  ///< as in make_schedule()
  Seconds time;
  int line = 0;
  int nodes = 1;  ///< over which the ranks are spread evenly
};

/// Errors on points that were not fitted: medians of |predicted / measured - 1|.
struct NetworkQuality {
  int points = 0;    ///< all there are
  int fitted = 0;    ///< used in each of the fits that were tested
  int held_out = 0;  ///< held-out points of 1 MB and more (of all points if none is as large), over three such fits
  double alpha_beta = 0;  ///< of one alpha and one beta for everything, for comparison
  double error = 0;
  double ninetieth = 0;
  double small = 0;  ///< of groups of several nodes: median below 1 MB; 0 if there are none
};

struct NetworkFit {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string library;
  FittedParameter alpha;                 ///< [s] per step
  double gamma = 0;                      ///< [s/B] reduced; given
  std::vector<double> knots;             ///< [B], rising
  std::vector<FittedParameter> betas;    ///< [s/B] at the knots
  std::map<int, FittedParameter> speed;  ///< by ranks
  ResidualInterpolation residuals{{}, {}, {}};
  std::optional<ProtocolConstants> protocols;  ///< where groups of several nodes were measured; instead of all above
  GroupTimings groups;                         ///< measured, where there are protocols
  std::vector<OtherSetting> other_settings;    ///< of the same operation on the same system; likewise
  std::vector<CollectiveTiming> points;        ///< what it was fitted to
  NetworkQuality quality;

  Seconds time(int ranks, double bytes, int nodes = 1) const;
  /// alpha, beta and gamma of the links for collectives of this size, for sim/collective.hpp.
  AlphaBetaGamma link(int ranks, double bytes) const;
  /// Whether size or ranks lie outside what was measured.
  bool extrapolates(int ranks, double bytes) const;

 private:
  double speed_of(int ranks) const;
  double beta_at(double bytes) const;
  double formula(int ranks, double bytes) const;
  friend NetworkFit fit_network(const std::vector<CollectiveTiming>&, double);
  friend void interpolate_residuals(NetworkFit&, const InterpolationSettings&);
};

/// Sets `residuals` from `points`, given the constants.
void interpolate_residuals(NetworkFit& fit, const InterpolationSettings& settings);

/// Tells each fit of groups of several nodes what was measured in the other settings of its operation.
void relate_settings(std::vector<NetworkFit>& fits);

/// Fits points of one operation and library. REQUIRES at least one.
NetworkFit fit_network(const std::vector<CollectiveTiming>& points, double gamma);

/// At most a third of the points: every third by ranks and size from `first` (0, 1 or 2) on, and at most 24 sizes for
/// each number of ranks, evenly spread over their logarithm.
std::vector<CollectiveTiming> thin_out(const std::vector<CollectiveTiming>& points, int first);

/// Fits each operation and library; large tables on a thinned part. Quality comes from three fits on a third or less;
/// of groups of several nodes, from fits without the group shape that they predict.
std::vector<NetworkFit> fit_networks(const std::vector<CollectiveTiming>& points, double gamma);

}  // namespace epocast
