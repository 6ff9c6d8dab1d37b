// Errors as clients of Anthropic's API read them: bodies and in-stream events. No sockets.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::anthropic {

// {"type":"error","error":{"type","message"},"request_id"}: the error's type goes by its status.
std::string error_body(const base::Error& error, std::string_view request_id);

// The same as one server-sent event. What follows must be the end of the connection's body.
std::string error_event(const base::Error& error, std::string_view request_id);

}  // namespace penstock::anthropic
