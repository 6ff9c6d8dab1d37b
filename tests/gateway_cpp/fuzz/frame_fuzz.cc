// Any bytes as a replica's frame: read in place or not, what protobuf reads in them.
#include <cstdint>
#include <string_view>

#include "upstream/frame_by_protobuf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::upstream::FrameReader reader;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  if (!penstock::upstream::by_protobuf::reads_as_protobuf(reader, message)) __builtin_trap();
  return 0;
}
