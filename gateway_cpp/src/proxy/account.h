// What one request costs its tenant: reserved when it is admitted, added up over its attempts as
// replicas tell it, settled once, when nobody has anything more to tell, which may be after its
// client has gone. A request that goes to several deployments has an account with each. Its I/O
// thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "admission/tenants.h"
#include "admission/usage_book.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "openai/request.h"
#include "routing/route_snapshot.h"
#include "upstream/call.h"
#include "upstream/call_request.h"

namespace penstock::proxy {

class Account;

admission::DayAmount budgets_of(const routing::DeploymentRoute& deployment);

// What a request may take of limits of a day at the deployment, which estimates it at `told`.
admission::DayAsk day_ask_of(const openai::Request& request, const openai::Endpoint& endpoint,
                             const routing::DeploymentRoute& deployment,
                             const admission::TokenEstimate& told);

// How many tokens each of its answers may have: by the deployment's limit, and, where the client
// names none and less than it may have (`ask`) is left of a limit of a day, by what is reserved. 0:
// the model's, which a provider alone knows: one that is told more than its model allows refuses
// the request.
uint32_t longest_answer(const routing::DeploymentRoute& deployment, const openai::Request& request,
                        const Account& account, const admission::DayAsk& ask);

// By which the replicas of a provider reckon.
void set_prices(upstream::CallRequest& request, const routing::DeploymentRoute& deployment);

class Account final : public upstream::Payer {
 public:
  Account(const base::Clock& clock, admission::UsageBook& book, admission::Caller caller)
      : clock_(clock), book_(book), caller_(std::move(caller)) {}
  // Of the same request with another deployment, which its tenant pays for once: limits are settled
  // with what all of them cost, and each deployment has on its page what it cost there.
  explicit Account(std::shared_ptr<Account> before);
  ~Account() override;

  const admission::Caller& caller() const { return caller_; }
  // Takes `tokens`, which the request is estimated at, from the limits of a minute of its tenant,
  // and what it may take from those of the day of its tenant and its key; why not, where they are
  // used up.
  std::optional<admission::Refusal> reserve(std::uint64_t tokens, const admission::DayAsk& ask,
                                            base::SteadyTime now);
  // Of a request that has reserved with another deployment: what it may cost here besides what is
  // reserved and not spent.
  std::optional<admission::Refusal> reserve_money(admission::DayAsk ask);
  // Takes what the request may cost here from the budgets of the deployment, if it has any; why
  // not, where they are used up.
  std::optional<admission::Refusal> reserve_budget(const routing::DeploymentRoute& deployment,
                                                   const admission::DayAsk& ask);
  // Whether it could now.
  bool has_budget(const routing::DeploymentRoute& deployment, const admission::DayAsk& ask) const;
  // The tokens that its answers may have together, by what is reserved; nothing: any number.
  std::optional<std::uint64_t> answer() const;
  // It has left the deployment, or is not let in: what it has reserved of budgets and not spent is
  // others'.
  void leave_budget();
  // It goes to a replica of this deployment.
  void open(const routing::DeploymentRoute& deployment, std::string adapter,
            std::shared_ptr<base::DeploymentMetrics> metrics);
  void cost(const upstream::Usage& usage) override;
  // What it has cost so far, here and with the deployments before.
  std::uint64_t cost_nanousd() const;

 private:
  std::uint64_t unspent() const;
  admission::DayAmount spent() const { return {counts_.tokens(), counts_.cost_nanousd}; }
  void grant(const admission::DayAsk& ask);
  std::optional<admission::Refusal> reserve_of_day(const admission::DayAmount& estimate);
  std::optional<admission::Refusal> reserve_of_day(admission::DayReservation& taken,
                                                   const std::string& key_id,
                                                   const admission::DayAmount& limits,
                                                   const admission::DayAmount& estimate);

  const base::Clock& clock_;
  admission::UsageBook& book_;
  const admission::Caller caller_;
  const std::shared_ptr<Account> before_;  // with the deployment before; null: this is the first
  admission::TenantReservation reservation_;
  admission::DayReservation of_tenant_;  // of limits of the day
  admission::DayReservation of_key_;
  admission::DayReservation of_deployment_;  // of budgets
  std::uint64_t reserved_nanousd_ = 0;
  std::optional<std::uint64_t> of_day_;     // what answer() may be by limits of the day
  std::optional<std::uint64_t> of_budget_;  // by budgets
  std::string deployment_;                  // empty: it went nowhere
  routing::Prices prices_;                  // none, where its replicas reckon
  std::string adapter_;
  std::shared_ptr<base::DeploymentMetrics> metrics_;  // null: it went nowhere
  admission::UsageCounts counts_;
  admission::DayAmount elsewhere_;  // of those that come after it
};

}  // namespace penstock::proxy
