// A message as it goes over gRPC: behind its prefix.
#pragma once

#include <string>
#include <string_view>

#include "upstream/grpc_messages.h"

namespace penstock::upstream {

inline std::string framed(std::string_view message) {
  std::string out;
  append_message_prefix(out, static_cast<uint32_t>(message.size()));
  return out.append(message);
}

}  // namespace penstock::upstream
