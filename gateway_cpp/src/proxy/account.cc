#include "proxy/account.h"

#include <algorithm>
#include <limits>
#include <variant>

namespace penstock::proxy {

namespace {

admission::DayHolder holder_of(const routing::DeploymentRoute& deployment) {
  return {.tenant = {}, .key_id = {}, .deployment = deployment.name};
}

// With an answer of this at most.
admission::DayAsk within(admission::DayAsk ask, std::optional<std::uint64_t> answer) {
  ask.most = std::min(ask.most, answer.value_or(ask.most));
  ask.least = std::min(ask.least, ask.most);
  return ask;
}

}  // namespace

admission::DayAmount budgets_of(const routing::DeploymentRoute& deployment) {
  return {deployment.budget_tokens, deployment.budget_nanousd};
}

// A limit of a day that is reached is not to be undone as one of a minute is. So what may come is
// reserved, and not what will: what the client allows its answers; where it says nothing, some
// times what answers have, and no answer of an own model gets more than was reserved for it.
admission::DayAsk day_ask_of(const openai::Request& request, const openai::Endpoint& endpoint,
                             const routing::DeploymentRoute& deployment,
                             const admission::TokenEstimate& told) {
  constexpr std::uint64_t kTimes = 4;
  constexpr std::uint64_t kUnknownLength = 4'096;  // what providers' models allow at least
  admission::DayAsk ask{.prompt = told.prompt, .prices = deployment.prices};
  ask.least = ask.most = told.completion;
  ask.is_fixed = request.max_tokens || endpoint.limits[0].empty();
  if (request.max_tokens) ask.least = ask.most = told.asked;
  if (ask.is_fixed) return ask;
  const bool is_known = deployment.max_model_len != 0 && !deployment.managed;
  std::uint64_t longest = deployment.limits.max_completion_tokens;
  if (longest == 0) longest = is_known ? deployment.max_model_len : kUnknownLength;
  ask.most = told.choices * longest;
  ask.least = std::min(ask.most, kTimes * told.completion);
  return ask;
}

uint32_t longest_answer(const routing::DeploymentRoute& deployment, const openai::Request& request,
                        const Account& account, const admission::DayAsk& ask) {
  const uint32_t limit = deployment.limits.max_completion_tokens;
  const auto answer = account.answer();
  if (request.max_tokens || !answer || *answer >= ask.most) return limit;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  const uint64_t most = limit != 0 ? limit : kMost;
  const uint64_t each = *answer / std::max<uint64_t>(request.answers(), 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(each, 1, most));
}

void set_prices(upstream::CallRequest& request, const routing::DeploymentRoute& deployment) {
  if (!deployment.managed) return;
  constexpr uint64_t kMillion = 1'000'000;
  request.input_price = deployment.prices.nanousd(kMillion, 0, 0);
  request.output_price = deployment.prices.nanousd(0, 0, kMillion);
  request.cached_price = deployment.prices.nanousd(kMillion, kMillion, 0);
}

Account::Account(std::shared_ptr<Account> before)
    : clock_(before->clock_),
      book_(before->book_),
      caller_(before->caller_),
      before_(std::move(before)),
      of_day_(before_->of_day_) {}

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

std::optional<admission::Refusal> Account::reserve(std::uint64_t tokens,
                                                   const admission::DayAsk& ask,
                                                   base::SteadyTime now) {
  auto taken = caller_.meter->reserve(tokens, now, clock_.wall_now());
  if (auto* refusal = std::get_if<admission::Refusal>(&taken)) {
    counts_.rejected = 1;
    return std::move(*refusal);
  }
  reservation_ = std::move(std::get<admission::TenantReservation>(taken));
  grant(ask);
  const admission::DayAmount most = ask.with(of_day_.value_or(ask.least));
  auto no = reserve_of_day(most);
  counts_.rejected = no ? 1 : 0;
  if (!no) reserved_nanousd_ = most.nanousd;
  if (!no) return std::nullopt;
  reservation_.settle(0, now);
  return no;
}

std::optional<admission::Refusal> Account::reserve_money(admission::DayAsk ask) {
  if (!before_ || reserved_nanousd_ > 0) return std::nullopt;
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  ask.held = {.tokens = kAll, .nanousd = unspent()};
  ask = within(ask, of_day_);
  grant(ask);
  const admission::DayAmount more = ask.with(of_day_.value_or(ask.least));
  if (more.nanousd == 0) return std::nullopt;
  auto no = reserve_of_day(more);
  if (!no) reserved_nanousd_ = more.nanousd;
  return no;
}

std::optional<admission::Refusal> Account::reserve_budget(
    const routing::DeploymentRoute& deployment, const admission::DayAsk& ask) {
  const admission::DayAmount budgets = budgets_of(deployment);
  if (!budgets) return std::nullopt;
  const auto holder = holder_of(deployment);
  const auto now = clock_.wall_now();
  const admission::DayAsk asked = within(ask, of_day_);
  of_budget_ = book_.day().answer_within(holder, budgets, asked, now);
  auto outcome = book_.day().reserve(holder, budgets, asked.with(*of_budget_), now);
  if (auto* no = std::get_if<admission::Refusal>(&outcome)) {
    return admission::beyond_budget(std::move(*no));
  }
  of_deployment_.join(std::move(std::get<admission::DayReservation>(outcome)));
  return std::nullopt;
}

bool Account::has_budget(const routing::DeploymentRoute& deployment,
                         const admission::DayAsk& ask) const {
  const auto holder = holder_of(deployment);
  const auto now = clock_.wall_now();
  const admission::DayAmount budgets = budgets_of(deployment);
  const admission::DayAsk asked = within(ask, of_day_);
  const auto answer = book_.day().answer_within(holder, budgets, asked, now);
  return book_.day().has_room(holder, budgets, asked.with(answer), now);
}

std::optional<std::uint64_t> Account::answer() const { return of_budget_ ? of_budget_ : of_day_; }

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

std::uint64_t Account::cost_nanousd() const {
  std::uint64_t sum = 0;
  for (const Account* one = this; one != nullptr; one = one->before_.get()) {
    sum += one->counts_.cost_nanousd;
  }
  return sum;
}

// Of limits of the day, those of its tenant and those of its key.
void Account::grant(const admission::DayAsk& ask) {
  const auto now = clock_.wall_now();
  const auto grant_by = [&](const std::string& key_id, const admission::DayAmount& limits) {
    if (!limits) return;
    const admission::DayHolder holder{caller_.tenant->id, key_id};
    of_day_ = book_.day().answer_within(holder, limits, within(ask, of_day_), now);
  };
  grant_by({}, caller_.tenant->limits.per_day);
  grant_by(caller_.key_id, caller_.key_per_day);
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
