// What may stand in a header or a log as it is: text of foreign making is asked this first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace penstock::base {

// Letters, digits, punctuation and blanks of ASCII, and nothing else.
inline bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
}

// As much of a UTF-8 text as `most` bytes hold, up to the end of a character.
constexpr std::string_view within(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (most > 0 && continues(text[most])) --most;
  return text.substr(0, most);
}

}  // namespace penstock::base
