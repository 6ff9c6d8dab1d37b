#include "openai/errors.h"

#include <algorithm>

#include "base/json_text.h"

namespace penstock::openai {
namespace {

void append_string_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    base::append_json_string(out, text);
  }
}

// The object's members, without its brace at the end.
std::string begin_error(const base::Error& error) {
  std::string out;
  out.reserve(160 + error.message.size());
  out += R"({"error":{"message":)";
  base::append_json_string(out, error.message);
  out += R"(,"type":)";
  base::append_json_string(out, error.type);
  out += R"(,"param":)";
  append_string_or_null(out, error.param);
  out += R"(,"code":)";
  append_string_or_null(out, error.code);
  return out;
}

}  // namespace

std::string error_body(const base::Error& error) { return begin_error(error) + "}}"; }

std::string error_event(const base::Error& error) {
  return "data: " + begin_error(error) + base::retry_member(error) + "}}\n\n";
}

std::vector<Header> error_headers(const base::Error& error) {
  std::vector<Header> headers;
  headers.push_back({"x-should-retry", error.client_may_retry ? "true" : "false"});
  if (error.retry_after.count() > 0) {
    // SDKs refuse to wait for long: python above 120 s, node above 60 s. Where they are told not to
    // try again, it is a person who reads when it would help.
    const std::int64_t most = error.client_may_retry ? 60'000 : error.retry_after.count();
    const auto millis = std::min<std::int64_t>(error.retry_after.count(), most);
    const auto seconds = std::max<std::int64_t>((millis + 999) / 1000, 1);
    headers.push_back({"retry-after", std::to_string(seconds)});
    headers.push_back({"retry-after-ms", std::to_string(millis)});
  }
  if (!error.drop_reason.empty()) {
    headers.push_back({"x-penstock-drop-reason", error.drop_reason});
  }
  // RFC 9110, 11.6.1: who is asked for a key is told how to show one.
  if (error.status == 401) headers.push_back({"www-authenticate", R"(Bearer realm="penstock")"});
  return headers;
}

}  // namespace penstock::openai
