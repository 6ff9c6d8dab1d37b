// Between the wire's RouteSnapshot and routing's.
#pragma once

#include "penstock/v1/routes.pb.h"
#include "routing/route_snapshot.h"

namespace penstock::control_plane {

routing::RouteSnapshot from_proto(const penstock::v1::RouteSnapshot& wire);

}  // namespace penstock::control_plane
