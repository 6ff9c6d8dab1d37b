#include "proxy/upstream_error.h"

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

}  // namespace penstock::proxy
