#include "http/request_id.h"

#include "base/hex_text.h"
#include "base/printable.h"

namespace penstock::http {

namespace {

constexpr size_t kLongestId = 512;  // as OpenAI takes them

bool is_fit(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId && base::is_printable_ascii(id);
}

}  // namespace

RequestIds::RequestIds() : thread_(std::random_device{}()), random_(std::random_device{}()) {}

std::string RequestIds::next() {
  std::string id = "req_";
  id.reserve(28);
  base::append_hex(id, thread_, 8);
  base::append_hex(id, random_());
  return id;
}

std::string_view callers_id(const RequestHead& head) {
  for (const std::string_view id : {head.client_request_id, head.request_id}) {
    if (is_fit(id)) return id;
  }
  return {};
}

}  // namespace penstock::http
