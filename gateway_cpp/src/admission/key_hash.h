// The SHA-256 of an API key: all that is ever kept of one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace penstock::admission {

using KeyHash = std::array<std::uint8_t, 32>;

// Keeps what the library would look up anew for each hash. One for each thread.
class KeyHasher {
 public:
  KeyHasher();
  ~KeyHasher();
  KeyHasher(const KeyHasher&) = delete;
  KeyHasher& operator=(const KeyHasher&) = delete;

  KeyHash operator()(std::string_view key);

 private:
  struct Digest;
  std::unique_ptr<Digest> digest_;
};

}  // namespace penstock::admission
