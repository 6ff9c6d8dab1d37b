// From the wire's tenants to admission's, and what they have under way to the head.
#pragma once

#include <vector>

#include "admission/tenants.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

// Keys whose hash is none are left out, and so are tenants without an id: that is whoever comes
// without a key. `keys_required` is the snapshot's own field.
std::vector<admission::Tenant> tenants_of(const penstock::v1::RouteSnapshot& snapshot);

void add_streams(const admission::Tenants& tenants, penstock::v1::GatewayReport& report);

}  // namespace penstock::control_plane
