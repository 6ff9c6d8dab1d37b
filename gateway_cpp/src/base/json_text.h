// Writing JSON text by hand: the gateway writes small, flat objects only.
#pragma once

#include <string>
#include <string_view>

namespace penstock::base {

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so the
// result is valid JSON whatever the input.
void append_json_string(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

}  // namespace penstock::base
