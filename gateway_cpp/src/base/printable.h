// What may stand in a header or a log as it is: text of foreign making is asked this first.
#pragma once

#include <algorithm>
#include <string_view>

namespace penstock::base {

// A letter, a digit or punctuation of ASCII.
constexpr bool is_visible(char c) { return c > ' ' && c < '\x7f'; }
inline bool is_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return is_visible(c); });
}

// That, or a blank.
constexpr bool is_printable(char c) { return c >= ' ' && c < '\x7f'; }
inline bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return is_printable(c); });
}

// Without the blanks and tabs at both ends.
inline std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace penstock::base
