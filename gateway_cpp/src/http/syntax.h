// The character classes and lists of HTTP/1 (RFC 9110, 5.6), on bytes and without a locale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/printable.h"

namespace penstock::http {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

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

// Whether one of the eight bytes of a word is a control character, the tab too: each test sets the
// high bit of a byte that fails it, or of one behind such a byte.
inline bool may_have_control(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101U;
  const uint64_t below_space = (word - kOnes * 0x20U) & ~word;
  const uint64_t differing = word ^ (kOnes * 0x7fU);
  const uint64_t deletes = (differing - kOnes) & ~differing;
  return ((below_space | deletes) & (kOnes * 0x80U)) != 0;
}

inline bool has_control(std::string_view text) {
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    if (may_have_control(word)) break;
  }
  while (i < text.size() && !is_control(text[i])) ++i;
  return i < text.size();
}

// Of a method or a field's name.
inline constexpr std::array<bool, 256> kTokenCharacters = [] {
  std::array<bool, 256> is{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) is[static_cast<unsigned char>(c)] = true;
  for (int c = 0; c < 128; ++c)
    is[c] |= is_digit(static_cast<char>(c)) || is_letter(static_cast<char>(c));
  return is;
}();

inline bool is_token_character(char c) { return kTokenCharacters[static_cast<unsigned char>(c)]; }

inline bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

using base::trim;

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
