#include "routing/candidates.h"

#include <algorithm>
#include <cmath>

namespace penstock::routing {
namespace {

// An eighth of the places may be in use whatever the others have: there is no one to spare.
constexpr double kEasyShare = 0.125;

}  // namespace

bool Candidates::is_excluded(const Replica& replica) const {
  return std::ranges::find(excluded_, &replica) != excluded_.end();
}

bool Candidates::is_within(const Replica& replica, double factor) const {
  const double mean = static_cast<double>(totals_.load + 1) / std::max(1U, totals_.sound);
  const double easy = std::floor(replica.limit() * kEasyShare);
  const double most = std::max(std::ceil(factor * mean), easy);
  const double share = double(replica.share_tenths()) / SlowStart::kFull;
  return replica.standing().load + 1.0 <= std::max(1.0, most * share);
}

}  // namespace penstock::routing
