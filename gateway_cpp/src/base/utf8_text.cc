#include "base/utf8_text.h"

#include <algorithm>

namespace penstock::base {
namespace {

unsigned char byte_of(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

std::size_t utf8_sequence(std::string_view text, std::size_t i) {
  const unsigned char lead = byte_of(text, i);
  if (lead < 0x80U) return 1;
  if (lead < 0xC2U || lead > 0xF4U || !continues(text, i + 1)) return 0;
  const unsigned char second = byte_of(text, i + 1);
  if (lead < 0xE0U) return 2;
  if (!continues(text, i + 2)) return 0;
  if (lead < 0xF0U) {
    const bool overlong = lead == 0xE0U && second < 0xA0U;
    const bool surrogate = lead == 0xEDU && second > 0x9FU;
    return overlong || surrogate ? 0 : 3;
  }
  const bool overlong = lead == 0xF0U && second < 0x90U;
  const bool beyond = lead == 0xF4U && second > 0x8FU;
  return overlong || beyond || !continues(text, i + 3) ? 0 : 4;
}

std::string valid_text(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_sequence(text, i);
    valid += length == 0 ? kReplacement : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return valid;
}

}  // namespace penstock::base
