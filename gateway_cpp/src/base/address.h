// Where something listens, as flags, snapshots and logs write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::base {

// host:port; an IPv6 host stands in brackets: [::1]:8080.
struct Address {
  std::string host;
  std::uint16_t port = 0;  // 0 in --listen: any free one, logged at start

  std::string text() const;
  // Whether only this machine reaches it: 127.0.0.0/8, ::1 or localhost. Other names may be
  // anything.
  bool is_loopback() const;
};

Result<Address> parse_address(std::string_view text);

}  // namespace penstock::base
