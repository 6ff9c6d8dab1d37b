// Proves that a JSON value which the gateway does not read is well formed, and counts what it is
// made of. simdjson's on-demand mode skips such values unread; a body that passes here is one that
// the engine's parser takes too.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "openai/elements.h"

namespace penstock::openai {

// Deeper than any tool schema, shallower than any parser's limit.
inline constexpr int kDeepestNesting = 256;
inline constexpr int kFieldDepth = 1;  // of a value in the body's own object

// Where a list lies, and so what its elements are.
enum class Inside : bool { kOther, kMessages };

// Walks through the values of one body.
class Walker {
 public:
  // Consumes `value`, which is a field of the body or lies in one, so deep. DEPTH_ERROR beyond
  // kDeepestNesting.
  simdjson::error_code walk(simdjson::ondemand::value value, int depth, Inside inside);

  Elements elements;  // so far; what the caller goes through itself, it counts

 private:
  simdjson::error_code walk_array(simdjson::ondemand::value& value, int depth, Inside inside);
  simdjson::error_code walk_object(simdjson::ondemand::value& value, int depth, Inside inside);
};

// The token of a scalar that is no string, without the white space behind it.
std::string_view scalar_token(simdjson::ondemand::value& value);

// Of such a token: 3, and 3.0 as well, which engines take. Nothing: it is no whole number, or
// beyond what a double counts one by one.
std::optional<std::uint64_t> whole_number(std::string_view token);

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
