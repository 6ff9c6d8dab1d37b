// The next part of an answer, as it lies in what a replica sent.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::upstream {

// As v1::Chunk, without the tokens' own ids.
struct ChunkView {
  std::string_view body;
  uint32_t events = 0;  // SSE events in the body
  uint32_t tokens = 0;  // generated since the chunk before
};

}  // namespace penstock::upstream
