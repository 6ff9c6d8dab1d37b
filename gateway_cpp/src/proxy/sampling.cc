// What is kept of a request that is repeated for our own sake, and handed on once it has settled.
#include <chrono>
#include <utility>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "proxy/shadow_copies.h"
#include "routing/hashing.h"

namespace penstock::proxy {

// What its tenant's limits or the gateway's refuse is never sampled: nobody may have others' work
// made by what he may not ask for.
void RequestFlow::sample(Exchange& x) {
  const admission::Caller& caller = x.caller();
  const admission::ShadowAsk ask{.model = x.request.model,
                                 .request_id = x.ask.request_id,
                                 .session = x.session_name(),
                                 .tenant = caller.tenant->id,
                                 .path = x.ask.endpoint->path};
  x.shadow = shadows_.sample({.ask = ask,
                              .named = x.named(),
                              .tenant = caller.tenant,
                              .endpoint = *x.ask.endpoint,
                              .may_degrade = x.ask.may_degrade,
                              .has_tools = x.request.has_tools,
                              .body_bytes = x.body_bytes});
  if (!x.shadow) return;
  if (x.large) x.shadow->body = x.large->text;
  x.shadow->pair.set_session(routing::hash_text(x.sticky_name()));
}

// What engines die of is not tried on others for our own sake.
void Exchange::end_sample() noexcept {
  try {
    if (danger.may_kill() || record().quarantined) return shadow->to.drop(*shadow);
    for (const auto& sampled : shadow->rules) record().shadows.push_back(sampled.rule->name);
    fill(*shadow);
    ShadowCopies& to = shadow->to;
    to.begin(std::move(shadow));
  } catch (...) {
    shadow.reset();  // no memory is left: its client has its answer
  }
}

void Exchange::fill(ShadowSample& sample) {
  using std::chrono::milliseconds;
  if (!sample.body) sample.body = std::make_shared<std::string>(std::move(ask.body));
  sample.request = std::move(request);
  v1::ShadowPair& pair = sample.pair;
  pair.set_request_id(ask.request_id);
  const auto came = parts.clock.wall_now() - settlement.age();
  pair.set_at_ms(std::chrono::duration_cast<milliseconds>(came.time_since_epoch()).count());
  pair.set_tenant(std::string(record().tenant));
  pair.set_path(std::string(record().path));
  pair.set_confined(!sample.may_degrade);
  describe(*pair.mutable_primary());
  const RequestRecord& told = record();
  if (told.outcome == base::Outcome::kCancelled) pair.add_marks("client_left");
  if (told.outcome == base::Outcome::kRejected) pair.add_marks("refused");
  if (!told.degraded.empty()) pair.add_marks("degraded");
  if (told.is_trimmed()) pair.add_marks("trimmed");
  const unsigned to_go_on = told.resumption ? told.resumption->attempts : 0;
  if (told.attempts_made - to_go_on > 1 || !left.empty()) pair.add_marks("failed_over");
  if (resumes() > 0) pair.add_marks("resumed");
  if (at.way == Way::kCanary) pair.add_marks("canary");
}

// Times are from the beginning of its admission on.
void Exchange::describe(v1::ShadowAnswer& answer) {
  const RequestRecord& told = record();
  const auto before = settlement.age(admitted);
  answer.set_deployment(told.deployment());
  answer.set_adapter(told.adapter());
  answer.set_model_version(told.model_version);
  answer.set_replica(told.replica);
  answer.set_status(told.status);
  answer.set_error_code(told.error_code);
  answer.set_queue_us(microseconds_of(told.queue_wait));
  if (told.ttft) answer.set_ttft_us(microseconds_of(*told.ttft - before));
  answer.set_total_us(microseconds_of(settlement.age() - before));
  answer.set_cut(shadow->answer.cut());
  answer.set_body(shadow->answer.take());
  upstream::Usage usage{.prompt_tokens = told.prompt_tokens,
                        .completion_tokens = told.completion_tokens,
                        .cached_tokens = told.cached_tokens};
  if (attempts.is_under_way()) {
    answer.set_content_type(attempts.call().head().content_type);
    usage = attempts.call().seen();
  }
  if (at.route.deployment) tell(usage, *at.route.deployment, *answer.mutable_usage());
}

}  // namespace penstock::proxy
