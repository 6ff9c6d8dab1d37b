// The frame that starts one call whose body is large: everything of it but the body, which comes
// last in it and so can be written from where it lies.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/v1/inference.pb.h"

namespace penstock::upstream {

// A ClientFrame with `start`, whose request has no body, up to where `body_bytes` bytes of body
// follow.
std::string start_frame_before_body(const v1::Start& start, size_t body_bytes);

}  // namespace penstock::upstream
