// Any bytes as a chunked body: read at once and byte by byte they are the same body, or the same
// fault, and never more than the limit.
#include <cstdint>
#include <string>
#include <string_view>

#include "http/chunk_decoder.h"

namespace {

using penstock::http::ChunkDecoder;

constexpr std::size_t kLimit = 4096;

struct Decoded {
  ChunkDecoder::State state;
  std::string body;
  std::size_t used = 0;
};

Decoded decode(std::string_view bytes, std::size_t step) {
  ChunkDecoder decoder(kLimit);
  Decoded decoded{};
  while (decoded.used < bytes.size() && decoder.state() == ChunkDecoder::State::kMore) {
    decoded.used += decoder.feed(bytes.substr(decoded.used, step), decoded.body);
  }
  decoded.state = decoder.state();
  return decoded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Decoded whole = decode(bytes, size);
  const Decoded parts = decode(bytes, 1);
  const bool same =
      whole.state == parts.state && whole.body == parts.body && whole.used == parts.used;
  if (!same || whole.body.size() > kLimit) __builtin_trap();
  return 0;
}
