#include "base/error.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace penstock::base {
namespace {

constexpr std::string_view kInvalidRequest = "invalid_request_error";
constexpr std::string_view kServerError = "server_error";
constexpr std::string_view kTimeoutError = "timeout_error";
constexpr std::string_view kRateLimitError = "rate_limit_error";

constexpr auto kNo = Retry::kNever;
constexpr auto kYes = Retry::kBeforeFirstToken;

// In the order of Kind.
constexpr std::array kTable = {
    KindTraits{"invalid_json", 400, kInvalidRequest, "invalid_json", Fault::kClient, kNo, false},
    KindTraits{"missing_parameter", 400, kInvalidRequest, "missing_required_parameter",
               Fault::kClient, kNo, false},
    KindTraits{"invalid_type", 400, kInvalidRequest, "invalid_type", Fault::kClient, kNo, false},
    KindTraits{"invalid_value", 400, kInvalidRequest, "invalid_value", Fault::kClient, kNo, false},
    KindTraits{"bad_request", 400, kInvalidRequest, "bad_request", Fault::kClient, kNo, false},
    KindTraits{"model_not_found", 404, kInvalidRequest, "model_not_found", Fault::kClient, kNo,
               false},
    KindTraits{"adapter_unknown", 503, kServerError, "adapter_unknown", Fault::kGateway, kNo, true},
    KindTraits{"unsupported_endpoint", 400, kInvalidRequest, "unsupported_endpoint", Fault::kClient,
               kNo, false},
    KindTraits{"path_not_found", 404, kInvalidRequest, "not_found", Fault::kClient, kNo, false},
    KindTraits{"method_not_allowed", 405, kInvalidRequest, "method_not_allowed", Fault::kClient,
               kNo, false},
    KindTraits{"request_timeout", 408, kTimeoutError, "request_timeout", Fault::kClient, kNo, true},
    KindTraits{"body_too_large", 413, kInvalidRequest, "request_too_large", Fault::kClient, kNo,
               false},
    KindTraits{"headers_too_large", 431, kInvalidRequest, "headers_too_large", Fault::kClient, kNo,
               false},
    KindTraits{"unsupported_media_type", 415, kInvalidRequest, "unsupported_media_type",
               Fault::kClient, kNo, false},
    KindTraits{"wrong_host", 421, kInvalidRequest, "host_not_allowed", Fault::kClient, kNo, false},
    KindTraits{"wrong_origin", 403, kInvalidRequest, "origin_not_allowed", Fault::kClient, kNo,
               false},
    KindTraits{"invalid_api_key", 401, "authentication_error", "invalid_api_key", Fault::kClient,
               kNo, false},
    KindTraits{"key_revoked", 401, "authentication_error", "key_revoked", Fault::kClient, kNo,
               false},
    KindTraits{"permission_denied", 403, "permission_error", "permission_denied", Fault::kClient,
               kNo, false},
    KindTraits{"rate_limit_exceeded", 429, kRateLimitError, "rate_limit_exceeded", Fault::kClient,
               kNo, true},
    KindTraits{"insufficient_quota", 429, kRateLimitError, "insufficient_quota", Fault::kClient,
               kNo, false},
    KindTraits{"token_budget", 400, kInvalidRequest, "token_budget_exceeded", Fault::kClient, kNo,
               false},
    KindTraits{"queue_deadline", 408, kTimeoutError, "queue_deadline", Fault::kGateway, kNo, true},
    KindTraits{"shed_load", 429, kRateLimitError, "overloaded", Fault::kGateway, kNo, true},
    KindTraits{"overloaded", 503, kServerError, "overloaded", Fault::kUpstream, kNo, true},
    KindTraits{"model_loading", 503, kServerError, "model_loading", Fault::kUpstream, kNo, true},
    KindTraits{"budget_used_up", 503, kServerError, "budget", Fault::kGateway, kNo, false},
    KindTraits{"scaled_to_zero", 503, kServerError, "scaled_to_zero", Fault::kGateway, kNo, false},
    KindTraits{"deployment_failed", 503, kServerError, "deployment_failed", Fault::kUpstream, kNo,
               false},
    KindTraits{"engine_dead", 503, kServerError, "engine_dead", Fault::kUpstream, kNo, true},
    KindTraits{"quarantined", 400, kInvalidRequest, "quarantined", Fault::kClient, kNo, false},
    KindTraits{"draining", 503, kServerError, "draining", Fault::kGateway, kNo, true},
    KindTraits{"no_routes", 503, kServerError, "no_routes", Fault::kGateway, kNo, true},
    KindTraits{"upstream_failed", 502, kServerError, "upstream_error", Fault::kUpstream, kYes,
               true},
    KindTraits{"deadline_exceeded", 504, kTimeoutError, "deadline_exceeded", Fault::kUpstream, kNo,
               true},
    KindTraits{"client_slow", 408, kTimeoutError, "client_slow", Fault::kClient, kNo, true},
    KindTraits{"client_gone", 499, kInvalidRequest, "client_gone", Fault::kClient, kNo, false},
    KindTraits{"config", 500, kServerError, "config", Fault::kGateway, kNo, false},
    KindTraits{"internal", 500, kServerError, "internal_error", Fault::kGateway, kNo, true},
};
static_assert(kTable.size() == static_cast<std::size_t>(Kind::kInternal) + 1);

}  // namespace

const KindTraits& traits(Kind kind) { return kTable[static_cast<std::size_t>(kind)]; }

Error make_error(Kind kind, std::string message, std::string param) {
  const KindTraits& row = traits(kind);
  Error error;
  error.kind = kind;
  error.fault = row.fault;
  error.retry = row.retry;
  error.client_may_retry = row.client_may_retry;
  error.status = row.status;
  error.type = row.type;
  error.code = row.code;
  error.param = std::move(param);
  error.message = std::move(message);
  return error;
}

std::string retry_member(const Error& error) {
  if (error.retry_after.count() <= 0) return {};
  return R"(,"retry_after_ms":)" + std::to_string(error.retry_after.count());
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::logic_error("value() of a failed result at " + std::string(where.file_name()) + ": " +
                         error.message);
}

}  // namespace penstock::base
