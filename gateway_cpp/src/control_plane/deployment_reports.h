// The gateway's own counts in the words of a report to the head.
#pragma once

#include <span>
#include <string>

#include "admission/canary_book.h"
#include "admission/program_book.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "control_plane/program_directory.h"
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

// What is known of router programs.
struct ProgramFacts {
  const ProgramDirectory& directory;
  const admission::ProgramBook& book;
  base::SteadyTime now;
};

// Why a deployment's program is not asked now, for a person; empty: it is, or there is none.
std::string why_not_asked(const routing::DeploymentRoute& route, const ProgramFacts& facts);

// What came of asking each deployment's program.
void add_programs(const routing::Routes& routes, const ProgramFacts& facts,
                  penstock::v1::GatewayReport& report);

// What canaries' arms have come to. A rule that nothing was counted of is told, too: it is no
// silence.
void add_canaries(std::span<const admission::CanaryRow> rows, penstock::v1::GatewayReport& report);

}  // namespace penstock::control_plane
