// How a call is started, as it goes to the replica: the bytes are made at once, from a request that
// stays the caller's, and a large body comes last, so that it can be written from where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "upstream/call_request.h"

namespace penstock::upstream {

// What a v1::Start says.
struct StartView {
  uint64_t call_id;
  uint64_t credit_bytes;
  const CallRequest& request;
};

// Appends the field of a v1::ClientFrame that starts the call. With `body_bytes`: up to where so
// many bytes of body follow, which `request` then does not have.
void append_start(std::string& frame, const StartView& start, size_t body_bytes = 0);

}  // namespace penstock::upstream
