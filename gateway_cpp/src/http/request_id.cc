#include "http/request_id.h"

#include "base/printable.h"

namespace penstock::http {

namespace {

void append_hex(std::string& text, uint64_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) text += kDigits[value >> shift & 15U];
}

constexpr size_t kLongestId = 512;  // as OpenAI takes them

bool is_fit(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId && base::is_printable_ascii(id);
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

std::string_view callers_id(const RequestHead& head) {
  for (const std::string_view id : {head.client_request_id, head.request_id}) {
    if (is_fit(id)) return id;
  }
  return {};
}

}  // namespace penstock::http
