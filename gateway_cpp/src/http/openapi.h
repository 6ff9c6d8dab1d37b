// The description of all that the gateway serves, as GET /openapi.json tells it: the text of
// gateway_cpp/openapi.json, which is made from vLLM's models and put into the program by the build.
#pragma once

#include <string_view>

namespace penstock::http {

std::string_view openapi_document();

}  // namespace penstock::http
