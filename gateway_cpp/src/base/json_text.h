// Writing JSON text by hand: the gateway writes small, flat objects only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text_cursor.h"

namespace penstock::base {

inline constexpr std::string_view kJsonType = "application/json";  // of a body

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so the
// result is valid JSON whatever the input.
void append_json_string(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

// The same into room that was made for it, of json_string_room(text); returns where it ends, so
// that whoever writes a long line may keep that in a register.
TextCursor put_json_string(TextCursor out, std::string_view text);

constexpr std::size_t kLongestEscape = 6;  // of one byte

constexpr std::size_t json_string_room(std::string_view text) {
  return kLongestEscape * text.size() + 2;
}

}  // namespace penstock::base
