#include "proxy/account.h"

#include <variant>

namespace penstock::proxy {

Account::Account(std::shared_ptr<Account> before)
    : clock_(before->clock_),
      book_(before->book_),
      caller_(before->caller_),
      before_(std::move(before)) {}

Account::~Account() {
  // In the book first: a report may be made between the two, and has in its rows what it has here.
  if (counts_ != admission::UsageCounts{}) {
    book_.add(caller_.tenant->id, caller_.key_id, deployment_, adapter_, counts_);
  }
  admission::DayAmount cost{counts_.tokens(), counts_.cost_nanousd};
  cost += elsewhere_;
  if (before_) {
    before_->elsewhere_ += cost;
  } else {
    reservation_.settle(cost.tokens, clock_.steady_now());
    of_day_.settle(cost);
  }
  if (metrics_ == nullptr) return;
  metrics_->prompt_tokens.add(counts_.prompt_tokens);
  metrics_->completion_tokens.add(counts_.completion_tokens);
  metrics_->cached_tokens.add(counts_.cached_tokens);
}

std::optional<admission::Refusal> Account::reserve(std::uint64_t tokens, base::SteadyTime now) {
  auto taken = caller_.meter->reserve(tokens, now, clock_.wall_now());
  if (auto* refusal = std::get_if<admission::Refusal>(&taken)) {
    counts_.rejected = 1;
    return std::move(*refusal);
  }
  reservation_ = std::move(std::get<admission::TenantReservation>(taken));
  auto no = reserve_of_day({.tokens = tokens});
  if (!no) return std::nullopt;
  counts_.rejected = 1;
  reservation_.settle(0, now);
  return no;
}

std::optional<admission::Refusal> Account::reserve_of_day(const admission::DayAmount& estimate) {
  const admission::Tenant& tenant = *caller_.tenant;
  if (!tenant.limits.per_day) return std::nullopt;
  auto taken =
      book_.day().reserve({tenant.id, {}}, tenant.limits.per_day, estimate, clock_.wall_now());
  if (auto* refusal = std::get_if<admission::Refusal>(&taken)) return std::move(*refusal);
  of_day_ = std::move(std::get<admission::DayReservation>(taken));
  return std::nullopt;
}

void Account::open(std::string deployment, std::string adapter,
                   std::shared_ptr<base::DeploymentMetrics> metrics) {
  deployment_ = std::move(deployment);
  adapter_ = std::move(adapter);
  metrics_ = std::move(metrics);
  counts_.requests = 1;
  // One request, whoever else was asked.
  for (Account* one = before_.get(); one != nullptr; one = one->before_.get()) {
    one->counts_.requests = 0;
  }
}

void Account::cost(const upstream::Usage& usage) {
  counts_.prompt_tokens += usage.prompt_tokens;
  counts_.completion_tokens += usage.completion_tokens;
  counts_.cached_tokens += usage.cached_tokens;
  counts_.cost_nanousd += usage.cost_nanousd;
}

}  // namespace penstock::proxy
