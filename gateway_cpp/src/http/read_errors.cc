#include "http/read_errors.h"

#include <string>

namespace penstock::http {

base::Error bad_request(std::string_view fault) {
  return base::make_error(base::Kind::kBadRequest,
                          "This is not a well-formed HTTP request: " + std::string(fault) + ".");
}

base::Error too_slow(std::string_view part, std::chrono::milliseconds limit) {
  return base::make_error(base::Kind::kRequestTimeout,
                          "The request's " + std::string(part) + " did not arrive within " +
                              std::to_string(limit.count()) + " ms. Send it again.");
}

base::Error headers_too_large(size_t limit) {
  return base::make_error(base::Kind::kHeadersTooLarge, "The request's headers are larger than " +
                                                            std::to_string(limit) + " bytes.");
}

base::Error body_too_large(size_t limit) {
  return base::make_error(
      base::Kind::kBodyTooLarge,
      "The request body is larger than " + std::to_string(limit) + " bytes. Send a shorter one.");
}

base::Error unpacked_body_too_large(size_t limit) {
  return base::make_error(base::Kind::kBodyTooLarge, "The request body unpacks to more than " +
                                                         std::to_string(limit) +
                                                         " bytes. Send a shorter one.");
}

base::Error bad_gzip(std::string_view fault) {
  return base::make_error(
      base::Kind::kBadRequest,
      "The body is not the gzip that its Content-Encoding says: " + std::string(fault) +
          ". Send it whole, or unpacked and without "
          "Content-Encoding.");
}

base::Error no_room() {
  auto error = base::make_error(base::Kind::kOverloaded,
                                "This gateway holds as many bytes of request bodies as it may. Try "
                                "again.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace penstock::http
