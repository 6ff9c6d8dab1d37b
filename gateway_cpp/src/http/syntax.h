// The character classes and lists of HTTP/1 (RFC 9110, 5.6), on bytes and without a locale.
#pragma once

#include <cstddef>
#include <string_view>

namespace penstock::http {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// 0 to 15; -1: not a hexadecimal digit.
inline int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// What a field may not hold: all control characters but the tab.
inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// Of a method or a field's name.
inline bool is_token_character(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return is_digit(c) || is_letter(c) || (kMarks.find(c) != std::string_view::npos && c != '\0');
}

inline bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// Without the blanks and tabs at both ends.
inline std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls `visit` with each element of a comma-separated list, trimmed.
template <class Visit>
void each_element(std::string_view list, const Visit& visit) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    visit(trim(list.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace penstock::http
