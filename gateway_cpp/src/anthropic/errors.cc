#include "anthropic/errors.h"

#include <algorithm>
#include <array>

#include "base/json_text.h"

namespace penstock::anthropic {
namespace {

struct Row {
  unsigned status;
  std::string_view type;
};

constexpr std::array kTypes = {
    Row{401, "authentication_error"}, Row{403, "permission_error"},  Row{404, "not_found_error"},
    Row{408, "timeout_error"},        Row{413, "request_too_large"}, Row{429, "rate_limit_error"},
    Row{503, "overloaded_error"},     Row{504, "timeout_error"},     Row{529, "overloaded_error"},
};

std::string_view type_of(unsigned status) {
  const auto row =
      std::ranges::find_if(kTypes, [status](const Row& row) { return row.status == status; });
  if (row != kTypes.end()) return row->type;
  return status >= 500 ? "api_error" : "invalid_request_error";
}

// As Anthropic begins it: clients that read this shorten their conversation and ask again.
constexpr std::string_view kTooLong = "prompt is too long: ";

bool is_of_a_long_prompt(const base::Error& error) {
  return error.code == "context_length_exceeded" ||
         (error.code == "token_budget_exceeded" && error.param == "messages");
}

std::string body_with(const base::Error& error, std::string_view request_id,
                      std::string_view further) {
  std::string out = R"({"type":"error","error":{"type":)";
  base::append_json_string(out, type_of(error.status));
  out += R"(,"message":)";
  base::append_json_string(
      out, is_of_a_long_prompt(error) ? std::string(kTooLong) + error.message : error.message);
  out += further;
  out += R"(},"request_id":)";
  base::append_json_string(out, request_id);
  out += '}';
  return out;
}

}  // namespace

std::string error_body(const base::Error& error, std::string_view request_id) {
  return body_with(error, request_id, {});
}

std::string error_event(const base::Error& error, std::string_view request_id) {
  return "event: error\ndata: " + body_with(error, request_id, base::retry_member(error)) + "\n\n";
}

}  // namespace penstock::anthropic
