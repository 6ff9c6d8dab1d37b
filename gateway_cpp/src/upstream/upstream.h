// Where the gateway sends a request: opens a token stream on a replica. The one that talks gRPC is
// ReplicaPool; tests have an in-process fake. One per I/O thread.
#pragma once

#include <memory>
#include <string_view>

#include "upstream/call.h"
#include "upstream/call_request.h"
#include "upstream/large_body.h"

namespace penstock::upstream {

// A replica as far as reaching it goes, for as long as open() runs.
struct ReplicaAddress {
  std::string_view replica_id;
  std::string_view address;  // host:port of its Inference service
  bool own_token = false;    // it asks for a token of its own
};

class Upstream {
 public:
  virtual ~Upstream() = default;
  // Never fails at once: an unreachable replica is a call that fails. `news` is raised on every
  // change of the call and must outlive it. `large`: the request's body, where it is not in
  // `request`; null otherwise.
  virtual std::unique_ptr<Call> open(const ReplicaAddress& replica, const CallRequest& request,
                                     runtime::Signal& news, SharedBody large) = 0;
};

}  // namespace penstock::upstream
