// Numbers in hexadecimal digits, as ids of requests and traces are written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text_cursor.h"

namespace penstock::base {

// "00" to "ff".
inline constexpr std::array<char, 512> kHexPairs = [] {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 512> pairs{};
  for (std::size_t i = 0; i < 256; ++i) {
    pairs[2 * i] = kDigits[i >> 4U];
    pairs[2 * i + 1] = kDigits[i & 15U];
  }
  return pairs;
}();

// All sixteen of them.
inline void put_hex(TextCursor& out, std::uint64_t value) {
  for (unsigned shift = 64; shift > 0;) {
    shift -= 8;
    out.put(std::string_view(&kHexPairs[2 * (value >> shift & 255U)], 2));
  }
}

// The last `digits`, at most 16, of `value`, with zeros before it.
inline void append_hex(std::string& out, std::uint64_t value, std::size_t digits = 16) {
  std::array<char, 16> text{};
  TextCursor cursor(text.data());
  put_hex(cursor, value);
  out.append(text.data() + (text.size() - digits), digits);
}

}  // namespace penstock::base
