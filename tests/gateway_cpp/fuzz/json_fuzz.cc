// Any bytes as the body of a request: it is refused with a client's status, or it is a request, and
// either way its bytes stay as they were. What is one with few elements
// allowed is one with more.
#include <cstdint>
#include <string>

#include "openai/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static penstock::openai::RequestParser parser;
  constexpr penstock::base::BodyElements kFew{.messages = 2, .parts = 2, .tools = 1, .values = 20};
  const std::string sent(reinterpret_cast<const char*>(data), size);
  for (const auto& endpoint : penstock::openai::endpoints()) {
    std::string body = sent;
    const auto request = parser.parse(endpoint, body, {});
    const bool good = request || request.error().status == 400;
    const auto within_few = parser.parse(endpoint, body, kFew);
    const bool fits = request ? within_few || within_few.error().status == 400 : !within_few;
    if (!good || !fits || body != sent) __builtin_trap();
  }
  return 0;
}
