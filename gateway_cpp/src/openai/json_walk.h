// Proves that a JSON value which the gateway does not read is well formed. simdjson's on-demand
// mode skips such values unread; a body that passes here is one that the engine's parser takes too.
#pragma once

#include <simdjson.h>

namespace penstock::openai {

// Deeper than any tool schema, shallower than any parser's limit.
inline constexpr int kDeepestNesting = 256;

// Consumes `value`. DEPTH_ERROR beyond kDeepestNesting.
simdjson::error_code walk(simdjson::ondemand::value value, int depth);

// The token of a scalar that is no string, without the white space behind it.
std::string_view scalar_token(simdjson::ondemand::value& value);

}  // namespace penstock::openai
