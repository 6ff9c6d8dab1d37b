// What a client is told whose request cannot be read.
#pragma once

#include <chrono>
#include <string_view>

#include "base/error.h"

namespace penstock::http {

base::Error bad_request(std::string_view fault);
// `part`: "header" or "body".
base::Error too_slow(std::string_view part, std::chrono::milliseconds limit);
base::Error headers_too_large(size_t limit);
base::Error body_too_large(size_t limit);
base::Error unpacked_body_too_large(size_t limit);
base::Error bad_gzip(std::string_view fault);
// Of a body less came in that time than it may.
base::Error too_little(size_t came, size_t least, std::chrono::milliseconds stretch);
// The budget for bodies is used up.
base::Error no_room();
// The client's own part of it is, which is of so many bytes.
base::Error own_room_used_up(size_t limit);

}  // namespace penstock::http
