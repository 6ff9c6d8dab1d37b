// Errors in the words of the endpoint that a client asked: bodies, and events where those need no
// knowledge of the stream. No sockets.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "openai/endpoints.h"

namespace penstock::dialects {

// A body for the error's status.
std::string error_body(openai::Dialect dialect, const base::Error& error,
                       std::string_view request_id);

}  // namespace penstock::dialects
