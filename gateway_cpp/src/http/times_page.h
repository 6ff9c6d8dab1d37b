// What the metrics page tells of how long requests took, by deployment and outcome.
#pragma once

#include "base/exposition.h"
#include "base/metrics.h"

namespace penstock::http {

void add_times(base::Exposition& page, const base::Metrics::Deployments& deployments);

}  // namespace penstock::http
