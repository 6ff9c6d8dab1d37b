// Between the wire's suspects and admission's.
#pragma once

#include <vector>

#include "admission/suspect_table.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

// Those whose fingerprint is none are left out.
std::vector<admission::Suspect> suspects_of(const penstock::v1::RouteSnapshot& snapshot);

void add_suspects(const std::vector<admission::Suspect>& suspects,
                  penstock::v1::GatewayReport& report);

}  // namespace penstock::control_plane
