// A request's seat in a canary: of which arm it is, and what came of it there. Null where its
// deployment, or alias, has no canary. Its I/O thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "admission/canary_end.h"
#include "routing/route_snapshot.h"

namespace penstock::proxy {

struct CanarySeat {
  // As it was when the request came: within its deployment's route, which it keeps alive.
  std::shared_ptr<const routing::CanaryRule> rule;
  std::uint64_t session = 0;  // the hash that its arm follows from
  bool candidate = false;     // its arm, whoever answers it in the end

  // Told of each arm, and then each rung, that could not answer it: once for each, with the error
  // that its client would have had. RequestFlow::leave() tells it of deployments.
  admission::CanaryCourse course = {};
};

}  // namespace penstock::proxy
