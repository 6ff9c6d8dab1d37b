#include "proxy/shadow_copy.h"

#include <utility>

namespace penstock::proxy {

using admission::ShadowOutcome;

void ShadowCopy::stop() {
  stopped_ = true;
  if (call_) call_->stop();
}

runtime::Awaitable<void> ShadowCopy::run() {
  auto there = way();
  if (const auto* why = std::get_if<ShadowOutcome>(&there)) co_return pair_->lack(arm_, *why);
  call_.emplace(parts_, errand(std::get<routing::Route>(std::move(there))));
  const auto gone = co_await call_->run();
  if (stopped_) co_return;
  if (gone) {
    call_->leave();
    pair_->lack(arm_, *gone);
  } else {
    auto told = call_->answer();
    call_->leave();
    pair_->answer(arm_, std::move(told), call_->take_kept());
  }
}

// Routes may be others than when the request came.
std::variant<routing::Route, ShadowOutcome> ShadowCopy::way() const {
  const ShadowSample& sample = pair_->sample();
  if (arm_ == ShadowArm::kSelf) return sample.named;
  const routing::ShadowRule& rule = pair_->rule();
  return shadow_way(*parts_.routes.read(), rule.candidate, rule.candidate_adapter,
                    {*sample.tenant, sample.may_degrade},
                    {.endpoint = sample.endpoint->path, .tools = sample.request.has_tools});
}

ShadowErrand ShadowCopy::errand(routing::Route route) const {
  const ShadowSample& sample = pair_->sample();
  const bool is_self = arm_ == ShadowArm::kSelf;
  const auto rule = pair_->shared_rule();
  return {
      .rule = rule,
      .route = std::move(route),
      .endpoint = sample.endpoint,
      .request = &sample.request,
      .body = sample.body,
      .request_id = sample.pair.request_id() + "." + rule->uid + (is_self ? ".self" : ".shadow"),
      .cache_salt = is_self ? rule->cache_salt + ":self" : rule->cache_salt};
}

}  // namespace penstock::proxy
