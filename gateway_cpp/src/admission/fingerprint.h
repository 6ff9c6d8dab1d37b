// What tells one request from another across gateways: SHA-256 of deployment uid, NUL, path, NUL,
// body. Made only for requests that an engine died under, and while there are such.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::admission {

struct Fingerprint {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Fingerprint&) const = default;

  std::string hex() const;
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

Fingerprint fingerprint_of(std::string_view deployment_uid, std::string_view path,
                           std::string_view body);

}  // namespace penstock::admission
