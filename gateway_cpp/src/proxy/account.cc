#include "proxy/account.h"

#include <algorithm>
#include <variant>

namespace penstock::proxy {

namespace {

admission::DayHolder holder_of(const routing::DeploymentRoute& deployment) {
  return {.tenant = {}, .key_id = {}, .deployment = deployment.name};
}

}  // namespace

admission::DayAmount budgets_of(const routing::DeploymentRoute& deployment) {
  return {deployment.budget_tokens, deployment.budget_nanousd};
}

Account::Account(std::shared_ptr<Account> before)
    : clock_(before->clock_),
      book_(before->book_),
      caller_(before->caller_),
      before_(std::move(before)) {}

Account::~Account() {
  // In the book first: a report may be made between the two, and has in its rows what it has here.
  if (counts_ != admission::UsageCounts{}) {
    const auto limits =
        caller_.key_per_day ? admission::KeyLimits::kOfTheDay : admission::KeyLimits::kNone;
    book_.add(caller_.tenant->id, caller_.key_id, deployment_, adapter_, counts_, limits);
  }
  admission::DayAmount cost = spent();
  of_deployment_.settle(cost);
  cost += elsewhere_;
  if (before_) {
    before_->elsewhere_ += cost;
  } else {
    reservation_.settle(cost.tokens, clock_.steady_now());
    of_tenant_.settle(cost);
    of_key_.settle(cost);
  }
  if (metrics_ == nullptr) return;
  metrics_->prompt_tokens.add(counts_.prompt_tokens);
  metrics_->completion_tokens.add(counts_.completion_tokens);
  metrics_->cached_tokens.add(counts_.cached_tokens);
}

std::optional<admission::Refusal> Account::reserve(const admission::DayAmount& estimate,
                                                   base::SteadyTime now) {
  auto taken = caller_.meter->reserve(estimate.tokens, now, clock_.wall_now());
  if (auto* refusal = std::get_if<admission::Refusal>(&taken)) {
    counts_.rejected = 1;
    return std::move(*refusal);
  }
  reservation_ = std::move(std::get<admission::TenantReservation>(taken));
  auto no = reserve_of_day(estimate);
  if (!no) reserved_nanousd_ = estimate.nanousd;
  if (!no) return std::nullopt;
  counts_.rejected = 1;
  reservation_.settle(0, now);
  return no;
}

std::optional<admission::Refusal> Account::reserve_money(std::uint64_t nanousd) {
  const std::uint64_t has = unspent();
  if (!before_ || reserved_nanousd_ > 0 || nanousd <= has) return std::nullopt;
  auto no = reserve_of_day({.nanousd = nanousd - has});
  if (!no) reserved_nanousd_ = nanousd - has;
  return no;
}

std::optional<admission::Refusal> Account::reserve_budget(
    const routing::DeploymentRoute& deployment, const admission::DayAmount& estimate) {
  const admission::DayAmount budgets = budgets_of(deployment);
  if (!budgets) return std::nullopt;
  auto outcome = book_.day().reserve(holder_of(deployment), budgets, estimate, clock_.wall_now());
  if (auto* no = std::get_if<admission::Refusal>(&outcome)) {
    return admission::beyond_budget(std::move(*no));
  }
  of_deployment_.join(std::move(std::get<admission::DayReservation>(outcome)));
  return std::nullopt;
}

bool Account::has_budget(const routing::DeploymentRoute& deployment,
                         const admission::DayAmount& estimate) const {
  return book_.day().has_room(holder_of(deployment), budgets_of(deployment), estimate,
                              clock_.wall_now());
}

void Account::leave_budget() { of_deployment_.shrink_to(spent()); }

// Of what the request has reserved anywhere, as far as replicas have told what it cost.
std::uint64_t Account::unspent() const {
  std::uint64_t reserved = 0;
  std::uint64_t spent = 0;
  for (const Account* one = this; one != nullptr; one = one->before_.get()) {
    reserved += one->reserved_nanousd_;
    spent += one->counts_.cost_nanousd;
  }
  return reserved - std::min(reserved, spent);
}

std::optional<admission::Refusal> Account::reserve_of_day(const admission::DayAmount& estimate) {
  auto no = reserve_of_day(of_tenant_, {}, caller_.tenant->limits.per_day, estimate);
  if (!no) no = reserve_of_day(of_key_, caller_.key_id, caller_.key_per_day, estimate);
  if (no) of_tenant_.settle({});
  return no;
}

std::optional<admission::Refusal> Account::reserve_of_day(admission::DayReservation& taken,
                                                          const std::string& key_id,
                                                          const admission::DayAmount& limits,
                                                          const admission::DayAmount& estimate) {
  if (!limits) return std::nullopt;
  auto outcome =
      book_.day().reserve({caller_.tenant->id, key_id}, limits, estimate, clock_.wall_now());
  if (auto* refusal = std::get_if<admission::Refusal>(&outcome)) return std::move(*refusal);
  taken = std::move(std::get<admission::DayReservation>(outcome));
  return std::nullopt;
}

void Account::open(const routing::DeploymentRoute& deployment, std::string adapter,
                   std::shared_ptr<base::DeploymentMetrics> metrics) {
  deployment_ = deployment.name;
  prices_ = deployment.managed ? routing::Prices{} : deployment.prices;
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
  // A provider's replicas, of an earlier template too, have reckoned themselves.
  counts_.cost_nanousd +=
      usage.cost_nanousd != 0
          ? usage.cost_nanousd
          : prices_.nanousd(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens);
}

}  // namespace penstock::proxy
