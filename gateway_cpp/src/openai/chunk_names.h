// What all chunks of one stream say alike: read of the first, to write one more like it.
#pragma once

#include <string>
#include <string_view>

namespace penstock::openai {

struct ChunkNames {
  std::string id;       // "chatcmpl-..."
  std::string object;   // "chat.completion.chunk"
  std::string created;  // seconds since 1970, as a number in text
  std::string model;
};

// Of the first chunk among these events; what it does not say stays empty.
ChunkNames chunk_names(std::string_view events);

}  // namespace penstock::openai
