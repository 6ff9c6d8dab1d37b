#include "proxy/account.h"

#include <variant>

namespace penstock::proxy {

Account::Account(std::shared_ptr<Account> before)
    : clock_(before->clock_),
      book_(before->book_),
      caller_(before->caller_),
      before_(std::move(before)) {}

Account::~Account() {
  const auto tokens = counts_.prompt_tokens + counts_.completion_tokens + elsewhere_;
  if (before_) {
    before_->elsewhere_ += tokens;
  } else {
    reservation_.settle(tokens, clock_.steady_now());
  }
  if (counts_ == admission::UsageCounts{}) return;
  book_.add(caller_.tenant->id, caller_.key_id, deployment_, adapter_, counts_);
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
