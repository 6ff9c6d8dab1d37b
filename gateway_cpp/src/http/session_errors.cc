#include "http/session_errors.h"

#include <chrono>
#include <string>

namespace penstock::http {

base::Error wrong_method(const RequestHead& head, std::string_view allow) {
  return base::make_error(base::Kind::kMethodNotAllowed, "The method " + std::string(head.method) +
                                                             " is not for this path. It takes " +
                                                             std::string(allow) + ".");
}

base::Error wrong_content_type(const RequestHead& head) {
  return base::make_error(base::Kind::kUnsupportedMediaType,
                          "The content type `" + std::string(head.content_type.substr(0, 100)) +
                              "` is not taken here. Send application/json.");
}

base::Error wrong_coding(const RequestHead& head) {
  return base::make_error(base::Kind::kUnsupportedMediaType,
                          "The content encoding `" +
                              std::string(head.content_encoding.substr(0, 100)) +
                              "` is not taken here. Send the body as it is, or in gzip.");
}

base::Error wrong_priority(const RequestHead& head) {
  return base::make_error(base::Kind::kBadRequest, "x-penstock-priority is `" +
                                                       std::string(head.priority.substr(0, 100)) +
                                                       "`. It is low, normal or high.");
}

base::Error too_many_clients() {
  auto error = base::make_error(base::Kind::kOverloaded,
                                "This gateway has as many connections as it may. Try again.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

base::Error plain_http() {
  return base::make_error(
      base::Kind::kBadRequest,
      "This port speaks HTTPS, and the request came as plain HTTP. Begin the URL "
      "with https://.");
}

base::Error our_fault() {
  return base::make_error(base::Kind::kInternal,
                          "This gateway failed at the request. Its log says how.");
}

}  // namespace penstock::http
