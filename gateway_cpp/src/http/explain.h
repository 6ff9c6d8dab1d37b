// All that a gateway has besides its threads for telling what it decided. Owned by main.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/config.h"
#include "control_plane/explain_client.h"
#include "control_plane/head_channel.h"
#include "observe/record_store.h"

namespace penstock::http {

struct Explain {
  // `began`: requests come from then on.
  Explain(const base::GatewayConfig& config, base::WallTime began, const std::string& instance,
          const control_plane::HeadChannel& head)
      : store(config.explain_budget_bytes, began), client(config.id, instance, head, store) {}

  observe::RecordStore store;
  control_plane::ExplainClient client;
};

}  // namespace penstock::http
