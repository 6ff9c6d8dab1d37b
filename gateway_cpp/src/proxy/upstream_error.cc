#include "proxy/upstream_error.h"

namespace penstock::proxy {

namespace {

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

}  // namespace

base::Error to_error(const v1::ErrorDetail& detail) {
  base::Error error = base::make_error(base::Kind::kUpstreamFailed, detail.message());
  if (detail.status() >= 400 && detail.status() < 600) error.status = detail.status();
  if (!detail.type().empty()) error.type = detail.type();
  error.code = detail.code();
  error.param = detail.param();
  error.fault = to_fault(detail.fault());
  error.client_may_retry = is_passing(error.status) && error.fault != base::Fault::kClient;
  error.retry_after = std::chrono::milliseconds(detail.retry_after_ms());
  return error;
}

}  // namespace penstock::proxy
