// Texts of others, made fit for what takes nothing but UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace penstock::base {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Whether the byte there goes on with a character.
constexpr bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
}

// Length of the sequence that starts at `i`; 0 if there is no valid one.
std::size_t utf8_sequence(std::string_view text, std::size_t i);

inline bool is_ascii(std::string_view text) {
  constexpr std::uint64_t kHighs = 0x8080808080808080U;
  std::uint64_t seen = 0;
  std::size_t i = 0;
  for (std::uint64_t word = 0; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    seen |= word;
  }
  for (; i < text.size(); ++i) seen |= static_cast<unsigned char>(text[i]);
  return (seen & kHighs) == 0;
}

// Its first `most` bytes, or a few less: no character is cut.
constexpr std::string_view cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  constexpr std::size_t kLongest = 4;  // of one character
  std::size_t end = most;
  while (end > 0 && most - end < kLongest && continues(text, end)) --end;
  return text.substr(0, end);
}

// What is no UTF-8 becomes U+FFFD.
std::string valid_text(std::string_view text);

}  // namespace penstock::base
