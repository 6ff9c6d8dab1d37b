#include "http/request_id.h"

#include <string_view>

namespace penstock::http {

namespace {

void append_hex(std::string& text, uint64_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) text += kDigits[value >> shift & 15U];
}

}  // namespace

RequestIds::RequestIds() : thread_(std::random_device{}()), random_(std::random_device{}()) {}

std::string RequestIds::next() {
  std::string id = "req_";
  id.reserve(28);
  append_hex(id, thread_, 8);
  append_hex(id, random_(), 16);
  return id;
}

}  // namespace penstock::http
