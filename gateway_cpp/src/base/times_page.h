// What the metrics page tells of how long requests took, by deployment and outcome.
#pragma once

#include "base/exposition.h"
#include "base/metrics.h"

namespace penstock::base {

void add_times(Exposition& page, const Metrics::Deployments& deployments);

}  // namespace penstock::base
