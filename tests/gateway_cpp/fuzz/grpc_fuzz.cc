// Any bytes as what a replica's connection brings: frames of HTTP/2, messages of gRPC, and in them
// frames of a session.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/v1/inference.pb.h"
#include "upstream/grpc_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  penstock::v1::ServerFrame frame;
  const auto parse = [&frame](std::string_view message) {
    return frame.ParseFromArray(message.data(), static_cast<int>(message.size()));
  };
  penstock::upstream::GrpcCodec codec(
      {.authority = "replica:1", .path = "/penstock.v1.Inference/Session"}, parse);
  std::string out;
  codec.produce(out, 1U << 16U);
  // The first byte says in which pieces the rest comes.
  const std::size_t step = std::size_t{data[0]} + 1;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!bytes.empty() && !codec.over()) {
    codec.feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
    out.clear();
    codec.produce(out, 1U << 16U);
  }
  return 0;
}
