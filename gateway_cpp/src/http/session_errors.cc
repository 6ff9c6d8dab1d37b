#include "http/session_errors.h"

#include <chrono>
#include <string>

#include "base/printable.h"
#include "base/priority.h"

namespace penstock::http {

namespace {

base::Error unknown_value(std::string_view header, std::string_view value,
                          std::string_view allowed) {
  return base::make_error(base::Kind::kBadRequest, std::string(header) + " is `" +
                                                       std::string(value.substr(0, 100)) +
                                                       "`. It is " + std::string(allowed) + ".");
}

}  // namespace

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

std::optional<base::Error> wrong_own_header(const RequestHead& head) {
  if (!head.priority.empty() && !base::priority_named(head.priority)) {
    return unknown_value("x-penstock-priority", head.priority, "low, normal or high");
  }
  if (!head.metadata.empty() && head.metadata != kIncludeMetadata) {
    return unknown_value("x-penstock-metadata", head.metadata, "include, or is left out");
  }
  if (!head.degrade.empty() && head.degrade != kNeverDegrade && head.degrade != kAllowDegrade) {
    return unknown_value("x-penstock-degrade", head.degrade, "never, allow, or is left out");
  }
  if (head.category.empty()) return std::nullopt;
  if (head.category.size() > kLongestCategory || !base::is_printable_ascii(head.category)) {
    return unknown_value("x-penstock-category", head.category.substr(0, kLongestCategory),
                         "64 printable characters at most");
  }
  return std::nullopt;
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
