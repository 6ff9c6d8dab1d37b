// The head of an HTTP/1 request, read only if it is beyond doubt. Two readers that disagree on
// where a request ends, or for whom it is, let one user speak in another's name, so whatever could
// be read in two ways is refused. A pure function over the bytes up to and including the empty
// line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace penstock::http {

enum class KeepAlive : uint8_t { kYes, kNo };

// What this gateway reads of a head: views into the bytes it was read from.
struct RequestHead {
  std::string_view method;
  std::string_view target;  // path and query, or "*": without scheme and authority
  std::string_view host;    // with its port; empty: HTTP/1.0 without one
  bool is_http_1_0 = false;
  KeepAlive keep_alive = KeepAlive::kYes;
  bool is_chunked = false;
  bool expects_continue = false;
  std::optional<uint64_t> content_length;
  std::string_view content_type;
  std::string_view content_encoding;
  std::string_view accept;             // what it would be answered
  std::string_view origin;             // of a browser's page; empty: not a browser
  std::string_view asked_headers;      // access-control-request-headers
  std::string_view client_request_id;  // x-client-request-id, as OpenAI has it
  std::string_view request_id;         // x-request-id, as vLLM has it
  std::string_view traceparent;
  std::string_view authorization;
  std::string_view x_api_key;
  std::string_view api_key;
  std::string_view priority;  // x-penstock-priority
  std::string_view session;   // x-penstock-session
  std::string_view category;  // x-penstock-category
  std::string_view metadata;  // x-penstock-metadata
  std::string_view degrade;   // x-penstock-degrade

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
};

// What is wrong, for a person.
struct HeadFault {
  std::string what;
};

std::variant<RequestHead, HeadFault> read_head(std::string_view bytes);

// "host" or "host:port", the host a name, an IPv4 address or an IPv6 address in brackets.
bool is_authority(std::string_view text);

}  // namespace penstock::http
