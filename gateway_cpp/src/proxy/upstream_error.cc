#include "proxy/upstream_error.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

base::Fault to_fault(v1::Fault fault) {
  switch (fault) {
    case v1::FAULT_CLIENT:
      return base::Fault::kClient;
    case v1::FAULT_GATEWAY:
      return base::Fault::kGateway;
    default:
      return base::Fault::kUpstream;
  }
}

// The statuses that SDKs retry by themselves.
bool is_passing(unsigned status) { return status >= 500 || status == 429 || status == 408; }

// When a replica that could not load an adapter may be able to, where it does not say so itself: a
// slot is free once a request has ended, and a load that took too long may be done. A load that
// failed may do so again at any time.
milliseconds usual_wait(std::string_view code) {
  if (code == "adapter_slots_full") return milliseconds(1000);
  return milliseconds(code == "adapter_load_timeout" ? 5000 : 0);
}

bool has_no_end(const std::string& finish_reason) {
  return finish_reason.empty() || finish_reason == "error";
}

}  // namespace

base::Error to_error(const v1::ErrorDetail& detail) {
  base::Error error = base::make_error(base::Kind::kUpstreamFailed, detail.message());
  if (detail.status() >= 400 && detail.status() < 600) error.status = detail.status();
  if (!detail.type().empty()) error.type = detail.type();
  error.code = detail.code();
  error.param = detail.param();
  error.fault = to_fault(detail.fault());
  const bool may_mend_itself =
      detail.fault() != v1::FAULT_CLIENT && detail.fault() != v1::FAULT_OPERATOR;
  error.client_may_retry = is_passing(error.status) && may_mend_itself;
  const milliseconds told(detail.retry_after_ms());
  error.retry_after = told.count() > 0 ? told : usual_wait(error.code);
  return error;
}

std::optional<base::Error> fault_of(const upstream::Finished& outcome, const std::string& wanted,
                                    std::string_view digest) {
  const std::string& used = outcome.adapter;
  // Replicas that know no digests need not say what they used.
  const bool untold = used.empty() && digest.empty();
  if (!untold && used != wanted) {
    return base::make_error(
        base::Kind::kUpstreamFailed,
        "The replica answered with " +
            (used.empty() ? "no adapter" : "the adapter `" + used + "`") + " instead of " +
            (wanted.empty() ? "the base model" : "`" + wanted + "`") + ". Send the request again.");
  }
  const auto& reasons = outcome.finish_reasons;
  const auto bad = std::find_if(reasons.begin(), reasons.end(), has_no_end);
  if (bad == reasons.end()) return std::nullopt;
  return base::make_error(base::Kind::kUpstreamFailed,
                          "The engine ended choice " + std::to_string(bad - reasons.begin()) +
                              " with " + (bad->empty() ? "no finish reason" : "an error") +
                              ". Send the request again.");
}

}  // namespace penstock::proxy
