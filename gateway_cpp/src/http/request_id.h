// Names for requests: ours, unique without asking anybody, and what the caller calls its own.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "http/strict_head.h"

namespace penstock::http {

// One for each I/O thread.
class RequestIds {
 public:
  RequestIds();
  // "req_" and 24 hexadecimal digits.
  std::string next();

 private:
  const uint32_t thread_;
  std::mt19937_64 random_;
};

// What the caller calls its request, for its answer and the logs: X-Client-Request-Id, else
// X-Request-Id; empty: nothing. One that is longer than 512 bytes or holds anything but printable
// ASCII counts as not sent: a name for logs decides about no answer, and forges no line of a log.
std::string_view callers_id(const RequestHead& head);

}  // namespace penstock::http
