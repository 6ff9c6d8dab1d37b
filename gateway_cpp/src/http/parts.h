// What the threads of a gateway are given by main, beside what its requests need. All outlives
// them.
#pragma once

#include <functional>

#include "control_plane/route_subscription.h"
#include "http/doors.h"
#include "http/shadows.h"
#include "proxy/parts.h"

namespace penstock::http {

struct TlsPort;
class WaitingRooms;

// How the gateway stands to its control plane. Any thread.
using Subscription = std::function<control_plane::SubscriptionState()>;

struct PortParts : proxy::GatewayParts {
  const Doors& doors;         // of the clients' port
  const Doors& status_doors;  // of the status port
  WaitingRooms& waiting;
  Shadows& shadows;
  Subscription subscription;
  const TlsPort* tls;  // null: clients speak plain HTTP
};

}  // namespace penstock::http
