// What one request costs its tenant: reserved when it is admitted, added up over its attempts as
// replicas tell it, settled once, when nobody has anything more to tell, which may be after its
// client has gone. Its I/O thread only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "admission/tenants.h"
#include "admission/usage_book.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "upstream/call.h"

namespace penstock::proxy {

class Account final : public upstream::Payer {
 public:
  Account(const base::Clock& clock, admission::UsageBook& book, admission::Caller caller)
      : clock_(clock), book_(book), caller_(std::move(caller)) {}
  ~Account() override;

  const admission::Caller& caller() const { return caller_; }
  // Takes what the request is estimated at from its tenant's limits; why not, where they are used
  // up.
  std::optional<admission::Refusal> reserve(std::uint64_t tokens);
  // It goes to a replica of this deployment.
  void open(std::string deployment, std::string adapter,
            std::shared_ptr<base::DeploymentMetrics> metrics);
  void cost(const v1::Usage& usage) override;

 private:
  const base::Clock& clock_;
  admission::UsageBook& book_;
  const admission::Caller caller_;
  admission::TenantReservation reservation_;
  std::string deployment_;  // empty: it went nowhere
  std::string adapter_;
  std::shared_ptr<base::DeploymentMetrics> metrics_;  // null: it went nowhere
  admission::UsageCounts counts_;
};

}  // namespace penstock::proxy
