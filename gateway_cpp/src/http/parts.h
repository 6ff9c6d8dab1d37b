// What the threads of a gateway are given by main, beside what its requests need. All outlives
// them.
#pragma once

#include <functional>
#include <vector>

#include "control_plane/deep_health.h"
#include "control_plane/route_subscription.h"
#include "http/doors.h"
#include "http/shadows.h"
#include "proxy/parts.h"

namespace penstock::http {

struct TlsPort;
class WaitingRooms;

// How the gateway stands to its control plane. Any thread.
using Subscription = std::function<control_plane::SubscriptionState()>;

// What these replicas last answered to a deep check; those that are due are asked. Any thread.
using DeepLook = std::function<std::vector<control_plane::DeepAnswer>(
    const std::vector<control_plane::DeepTarget>&)>;

struct PortParts : proxy::GatewayParts {
  const Doors& doors;         // of the clients' port
  const Doors& status_doors;  // of the status port
  WaitingRooms& waiting;
  Shadows& shadows;
  Subscription subscription;
  DeepLook look_deeply;
  const TlsPort* tls;  // null: clients speak plain HTTP
};

}  // namespace penstock::http
