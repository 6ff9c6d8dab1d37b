// The failures that the replica itself reports, in the terms of common.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/v1/common.pb.h"

namespace penstock::replica {

// The request itself is at fault: the answer would be the same anywhere.
inline v1::ErrorDetail client_error(uint32_t status, std::string_view code, std::string_view param,
                                    std::string_view message) {
  v1::ErrorDetail error;
  error.set_status(status);
  error.set_type("invalid_request_error");
  error.set_code(std::string(code));
  error.set_param(std::string(param));
  error.set_message(std::string(message));
  error.set_fault(v1::FAULT_CLIENT);
  error.set_retry(v1::RETRY_NEVER);
  return error;
}

// This replica cannot answer now; another one may.
inline v1::ErrorDetail unavailable(std::string_view code, std::string_view message,
                                   uint32_t retry_after_ms = 0) {
  v1::ErrorDetail error;
  error.set_status(503);
  error.set_type("server_error");
  error.set_code(std::string(code));
  error.set_message(std::string(message));
  error.set_fault(v1::FAULT_UPSTREAM);
  error.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  error.set_retry_after_ms(retry_after_ms);
  return error;
}

}  // namespace penstock::replica
