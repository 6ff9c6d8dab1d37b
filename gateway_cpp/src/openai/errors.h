// Errors as OpenAI clients read them: bodies, headers, in-stream events. No sockets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::openai {

// {"error":{"message","type","param","code"}}: always all four keys; param is null when empty.
std::string error_body(const base::Error& error);

// The same as one server-sent event: "data: {...}\n\n". What follows must be the end of the
// connection's body and no [DONE].
std::string error_event(const base::Error& error);

struct Header {
  std::string_view name;  // static
  std::string value;
};

// x-should-retry always; retry-after (whole seconds, 1 to 60) and retry-after-ms when a time is
// known; x-penstock-drop-reason when admission said no.
std::vector<Header> error_headers(const base::Error& error);

}  // namespace penstock::openai
