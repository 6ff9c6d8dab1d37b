// Numbers in hexadecimal digits, as ids of requests and traces are written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::base {

// The last `digits`, at most 16, of `value`, with zeros before it.
inline void append_hex(std::string& out, std::uint64_t value, std::size_t digits = 16) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 16> text{};
  for (std::size_t i = digits; i > 0; value >>= 4U) text[--i] = kDigits[value & 15U];
  out.append(text.data(), digits);
}

}  // namespace penstock::base
