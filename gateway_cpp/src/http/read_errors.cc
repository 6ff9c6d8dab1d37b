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

base::Error too_little(size_t came, size_t least, std::chrono::milliseconds stretch) {
  return base::make_error(
      base::Kind::kRequestTimeout,
      std::to_string(came) + " bytes of the request's body came within " +
          std::to_string(stretch.count()) + " ms, and " + std::to_string(least) +
          " are the least (--body-least-rate of the gateway). Send it again, and faster.");
}

base::Error no_room() {
  auto error = base::make_error(base::Kind::kOverloaded,
                                "This gateway holds as many bytes of request bodies as it may. Try "
                                "again.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

base::Error own_room_used_up(size_t limit) {
  auto error = base::make_error(
      base::Kind::kRateLimitExceeded,
      "The bodies of your requests that this gateway holds would be more than " +
          std::to_string(limit) +
          " bytes, which is the most for one tenant, or one address without a key "
          "(--body-share-bytes of the gateway). Send it again when some of your requests are "
          "answered.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace penstock::http
