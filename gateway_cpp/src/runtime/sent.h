// What became of bytes that a client is sent.
#pragma once

#include <cstdint>

namespace penstock::runtime {

enum class Sent : uint8_t {
  kAll,      // handed to the client's socket, or on its way there with what others are sent now
  kBlocked,  // part of it is kept until the client takes more: flush() before the next write
  kGone,     // the client left
};

}  // namespace penstock::runtime
