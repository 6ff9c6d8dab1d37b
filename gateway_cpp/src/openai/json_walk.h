// Proves that a JSON value which the gateway does not read is well formed. simdjson's on-demand
// mode skips such values unread; a body that passes here is one that the engine's parser takes too.
#pragma once

#include <simdjson.h>

#include <string_view>

namespace penstock::openai {

// Deeper than any tool schema, shallower than any parser's limit.
inline constexpr int kDeepestNesting = 256;

// Consumes `value`. DEPTH_ERROR beyond kDeepestNesting.
simdjson::error_code walk(simdjson::ondemand::value value, int depth);

// The token of a scalar that is no string, without the white space behind it.
std::string_view scalar_token(simdjson::ondemand::value& value);

// The key of an object's field. Newer simdjson asks whether to replace broken surrogates.
template <class Field>
simdjson::simdjson_result<std::string_view> unescaped_key(Field& field) {
  if constexpr (requires { field.unescaped_key(); }) {
    return field.unescaped_key();
  } else {
    return field.unescaped_key(false);
  }
}

}  // namespace penstock::openai
