// Any bytes as the events of a response: whatever they are, the stream that breaks ends with one
// event that says so.
#include <cstdint>
#include <string>
#include <string_view>

#include "openai/response_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using penstock::base::Kind;
  static const auto error = penstock::base::make_error(Kind::kDraining, "it ends");
  const std::string_view events(reinterpret_cast<const char*>(data), size);
  penstock::openai::ResponseStream stream;
  const std::size_t half = size / 2;
  const bool good = stream.note(events.substr(0, half)) <= half &&
                    stream.note(events.substr(half)) <= size - half;
  const std::string told = stream.failed(error, {.request_id = "req_1", .model = "mini"});
  const auto at = told.find("event: response.failed\ndata: {");
  if (!good || at == std::string::npos || !told.ends_with("}\n\n")) __builtin_trap();
  return 0;
}
