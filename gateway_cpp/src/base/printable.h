// What may stand in a header or a log as it is: text of foreign making is asked this first.
#pragma once

#include <algorithm>
#include <string_view>

namespace penstock::base {

// Letters, digits, punctuation and blanks of ASCII, and nothing else.
inline bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
}

}  // namespace penstock::base
