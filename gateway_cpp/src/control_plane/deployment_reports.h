// The gateway's own counts in the words of a report to the head.
#pragma once

#include <span>

#include "base/metrics.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

void add_deployments(std::span<const base::DeploymentTotals> totals,
                     penstock::v1::GatewayReport& report);

}  // namespace penstock::control_plane
