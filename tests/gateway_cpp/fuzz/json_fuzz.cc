// Any bytes as the body of a request: it is refused with a client's status, or it is a request, and
// either way its bytes stay as they were.
#include <cstdint>
#include <string>

#include "openai/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static penstock::openai::RequestParser parser;
  const std::string sent(reinterpret_cast<const char*>(data), size);
  for (const auto& endpoint : penstock::openai::endpoints()) {
    std::string body = sent;
    const auto request = parser.parse(endpoint, body, {});
    const bool good = request || request.error().status == 400;
    if (!good || body != sent) __builtin_trap();
  }
  return 0;
}
