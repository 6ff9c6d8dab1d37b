// Any bytes as the head of a request: it is refused, or every part of it lies in the bytes and
// holds nothing that ends a line.
#include <cstdint>
#include <string_view>

#include "http/strict_head.h"

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(std::string_view bytes, const penstock::http::RequestHead& head) {
  for (const std::string_view part :
       {head.method, head.target, head.host, head.content_type, head.origin, head.asked_headers,
        head.request_id, head.traceparent}) {
    require(part.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
    const bool inside =
        part.data() >= bytes.data() && part.data() + part.size() <= bytes.data() + bytes.size();
    require(part.empty() || inside || part == "/");
  }
  require(!head.method.empty() && !head.target.empty());
  require(head.host.empty() ? head.is_http_1_0 : penstock::http::is_authority(head.host));
  require(!(head.is_chunked && head.content_length));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto read = penstock::http::read_head(bytes);
  if (const auto* head = std::get_if<penstock::http::RequestHead>(&read)) check(bytes, *head);
  return 0;
}
