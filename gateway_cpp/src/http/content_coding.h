// How a request's body is packed, by its Content-Encoding.
#pragma once

#include <cstdint>
#include <string_view>

#include "http/strict_head.h"

namespace penstock::http {

enum class Coding : uint8_t {
  kIdentity,  // not at all
  kGzip,
  kUnknown,  // in a way, or in several, that nobody here unpacks
};

// What a 415 says that may be sent.
inline constexpr std::string_view kTakenCodings = "gzip";

Coding coding_of(const RequestHead& head);

}  // namespace penstock::http
