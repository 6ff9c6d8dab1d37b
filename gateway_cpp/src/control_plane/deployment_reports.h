// The gateway's own counts in the words of a report to the head.
#pragma once

#include <span>

#include "base/metrics.h"
#include "dispatch/dispatchers.h"
#include "penstock/v1/routes.pb.h"
#include "routing/route_table.h"

namespace penstock::control_plane {

void add_deployments(std::span<const base::DeploymentTotals> totals,
                     penstock::v1::GatewayReport& report);

// How each deployment's queue stands, and the replicas that this gateway sends nothing to by
// itself.
void add_standings(const routing::Routes& routes, const dispatch::Dispatchers::ByUid& dispatchers,
                   penstock::v1::GatewayReport& report);

}  // namespace penstock::control_plane
