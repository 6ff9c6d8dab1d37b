#include "routing/candidates.h"

#include <algorithm>
#include <cmath>

namespace penstock::routing {

bool Candidates::is_excluded(const Replica& replica) const {
  filter_.looks->add(replica);
  if (traits_.continues != 0 && replica.standing().continues != traits_.continues) return true;
  if (traits_.runs_on && !replica.takes_over()) return true;
  if (filter_.revisions != nullptr && !filter_.revisions->allows(filter_.wish, replica))
    return true;
  return std::ranges::find(filter_.excluded, &replica) != filter_.excluded.end();
}

bool Candidates::is_within(const Replica& replica, double factor, double share) const {
  const double mean = static_cast<double>(totals_.load + 1) / std::max(1U, totals_.sound);
  const double easy = std::floor(replica.limit() * share);
  const double most = std::max(std::ceil(factor * mean), easy);
  const double started = double(replica.share_tenths()) / SlowStart::kFull;
  return replica.standing().load + 1.0 <= std::max(1.0, most * started);
}

}  // namespace penstock::routing
