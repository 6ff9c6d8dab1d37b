// Names for requests, unique without asking anybody. One for each I/O thread.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace penstock::http {

class RequestIds {
 public:
  RequestIds();
  // "req_" and 24 hexadecimal digits.
  std::string next();

 private:
  const uint32_t thread_;
  std::mt19937_64 random_;
};

}  // namespace penstock::http
