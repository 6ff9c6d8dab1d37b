// The API key that a request presents, however its client's library sends it.
#pragma once

#include <string_view>

#include "http/strict_head.h"

namespace penstock::http {

// Of `Authorization: Bearer`, as OpenAI's libraries have it, of `x-api-key`, as Anthropic's, or of
// `api-key`, as Azure's, in this order; empty: it presents none.
std::string_view presented_key(const RequestHead& head);

}  // namespace penstock::http
