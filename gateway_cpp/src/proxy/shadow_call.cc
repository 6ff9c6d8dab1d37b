#include "proxy/shadow_call.h"

#include <chrono>
#include <utility>

#include "proxy/shadow_sample.h"
#include "proxy/upstream_error.h"

namespace penstock::proxy {

namespace {

using admission::ShadowOutcome;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{5'000};  // for a place
constexpr milliseconds kPoll{100};        // whether there is one
constexpr uint32_t kAdapterWaitMs = 5'000;
constexpr uint32_t kWell = 200;
constexpr uint32_t kUnavailable = 503;
constexpr uint32_t kTimedOut = 504;

}  // namespace

std::variant<routing::Route, ShadowOutcome> shadow_way(const routing::Routes& routes,
                                                       const std::string& deployment,
                                                       const std::string& adapter,
                                                       const ShadowSubject& subject,
                                                       const routing::Needs& needs) {
  if (subject.tenant.shadow_never) return ShadowOutcome::kNotAllowed;
  auto there = routing::route_shadow(routes, deployment, adapter, needs);
  auto* route = std::get_if<routing::Route>(&there);
  if (route == nullptr) return ShadowOutcome::kNotComparable;
  if (admission::is_kept_from(subject.tenant, subject.may_degrade, *route->deployment)) {
    return ShadowOutcome::kNotAllowed;
  }
  return std::move(*route);
}

ShadowCall::ShadowCall(const ThreadParts& parts, ShadowErrand errand)
    : parts_(parts),
      errand_(std::move(errand)),
      begun_(parts.clock.steady_now()),
      patience_(parts.timers, signal_),
      again_(parts.timers, signal_),
      waker_(std::make_shared<WakeUp>(parts.io, signal_)),
      answer_(parts.shadow_bytes),
      end_(errand_.endpoint->dialect) {}

ShadowCall::~ShadowCall() { waker_->leave(); }

void ShadowCall::stop() {
  stopped_ = true;
  signal_.raise();
}

runtime::Awaitable<ShadowCall::Gone> ShadowCall::run() {
  Gone gone = enter();
  do {
    if (!gone) gone = co_await find_place();
    if (gone || !place_.replica()) co_return gone;
    open();
    gone = co_await hear_out();
    if (gone) co_return gone;
  } while (is_tried_again());
  co_return std::nullopt;
}

ShadowCall::Gone ShadowCall::enter() {
  dispatcher_ = parts_.dispatchers.of(deployment());
  if (!dispatcher_ || is_suspect()) return ShadowOutcome::kNotComparable;
  wanted_.adapter = errand_.route.adapter();
  if (deployment().budget_used_up || !reserve()) return ShadowOutcome::kBudget;
  return std::nullopt;
}

// An engine there may die of it, which nobody wants to know. A large body is not hashed for that:
// it would take the time of the others of its thread.
bool ShadowCall::is_suspect() const {
  if (parts_.suspects.empty() || deployment().managed) return false;
  if (is_large()) return true;
  const auto standing = parts_.suspects.suspicion(fingerprint(), parts_.clock.wall_now());
  return !standing || *standing != admission::Suspicion::kClear;
}

admission::Fingerprint ShadowCall::fingerprint() const {
  return admission::fingerprint_of(deployment().uid, errand_.endpoint->path, *errand_.body);
}

// Nobody's request, nor a shadow of it, is to take another engine with it unawares.
void ShadowCall::suspect() const {
  const routing::DeploymentRoute& there = deployment();
  parts_.log.warning("a shadow was aboard an engine that died", {{"request_id", errand_.request_id},
                                                                 {"deployment", there.name},
                                                                 {"replica_id", replica_id_}});
  parts_.suspects.died({.fingerprint = fingerprint(),
                        .deployment = there.name,
                        .deployment_uid = there.uid,
                        .path = std::string(errand_.endpoint->path),
                        .deaths = failover_.deaths(),
                        .until = {}},
                       parts_.clock.wall_now());
}

// Of the rule's money of the day, and of the budgets of the deployment.
bool ShadowCall::reserve() {
  account_ = std::make_shared<Account>(parts_.clock, parts_.usage,
                                       parts_.shadow_book.payer(*errand_.rule));
  const openai::Request& request = *errand_.request;
  const auto told =
      dispatcher_->appraise(errand_.body->size(), request.max_tokens, request.answers()).estimate;
  ask_ = day_ask_of(request, *errand_.endpoint, deployment(), told);
  return !account_->reserve(told.tokens(), ask_, begun_) &&
         !account_->reserve_budget(deployment(), ask_);
}

runtime::Awaitable<ShadowCall::Gone> ShadowCall::find_place() {
  patience_.arm(kPatience);
  while (!stopped_) {
    if (dispatcher_->place_shadow(place_, wanted_, failover_.tried(), waker_)) {
      co_return std::nullopt;
    }
    if (!dispatcher_->is_usable_for(wanted_.adapter)) co_return absent();
    if (patience_.fired()) break;
    again_.arm(kPoll);
    co_await signal_.wait();
  }
  co_return ShadowOutcome::kCandidateBusy;
}

// One that is not there although it should be cannot answer: that is an answer.
ShadowCall::Gone ShadowCall::absent() {
  const auto& deployments = parts_.routes.read()->deployments();
  const auto now = deployments.find(deployment().name);
  if (now == deployments.end() || now->second->uid != deployment().uid) {
    return ShadowOutcome::kNotComparable;
  }
  const bool may_come = now->second->availability == base::Availability::kLoading ||
                        now->second->availability == base::Availability::kScaledToZero;
  return may_come ? Gone(ShadowOutcome::kCandidateBusy) : std::nullopt;
}

void ShadowCall::open() {
  const routing::Replica& replica = *place_.replica();
  sent_ = parts_.clock.steady_now();
  replica_id_ = replica.id().value;
  failover_.sent_to(replica.id());
  account_->open(deployment(), wanted_.adapter, nullptr);
  call_ = parts_.upstream.open({replica.id().value, replica.address(), replica.own_token()},
                               call_request(), signal_, is_large() ? errand_.body : nullptr);
  call_->hold({.place = {}, .payer = account_, .seen = {}});
  const auto own = deployment().limits.first_event_deadline;
  const auto limit = own.count() > 0 ? own : parts_.config.first_event_deadline;
  limit.count() > 0 ? patience_.arm(limit) : patience_.disarm();
}

upstream::CallRequest ShadowCall::call_request() const {
  const routing::DeploymentRoute& there = deployment();
  upstream::CallRequest request{
      .request_id = errand_.request_id,
      .method = "POST",
      .path = errand_.endpoint->path,
      .body = is_large() ? std::string_view() : std::string_view(*errand_.body),
      .model = errand_.request->model,
      .adapter = wanted_.adapter,
      .priority = admission::kShadowPriority,
      .tenant_salt = errand_.cache_salt,
      .max_prompt_tokens = there.limits.max_prompt_tokens,
      .max_completion_tokens = longest_answer(there, *errand_.request, *account_, ask_),
      .adapter_digest = errand_.route.digest(),
      .adapter_wait_ms = wanted_.adapter.empty() ? 0 : kAdapterWaitMs};
  set_prices(request, there);
  return request;
}

runtime::Awaitable<ShadowCall::Gone> ShadowCall::hear_out() {
  while (!stopped_) {
    take_news();
    if (call_->ended()) co_return std::nullopt;
    if (place_.was_given_up()) co_return ShadowOutcome::kPreempted;
    is_late_ = patience_.fired();
    if (is_late_) co_return std::nullopt;
    co_await signal_.wait();
  }
  co_return std::nullopt;
}

void ShadowCall::take_news() {
  if (!call_->has_bytes()) return;
  if (first_ == base::SteadyTime{}) first_ = parts_.clock.steady_now();
  call_->take(payload_);
  answer_.keep(payload_.bytes());
  if (is_streamed()) end_.note(payload_.bytes());
  call_->wrote(payload_.size());
  payload_.clear();
  const auto silence = parts_.config.silence;
  silence.count() > 0 ? patience_.arm(silence) : patience_.disarm();
}

// As a client's request is, before its first byte.
bool ShadowCall::is_tried_again() {
  if (stopped_ || !call_->failed()) return false;
  const bool has_engine = !deployment().managed;
  const Next next = failover_.after(call_->failure(), has_engine);
  if (has_engine && engine_died_with(call_->failure())) suspect();
  if (next == Next::kGiveUp || first_ != base::SteadyTime{}) return false;
  if (!dispatcher_->is_ready_besides(failover_.tried())) return false;
  place_.release();
  return true;
}

// Nobody needs wait for what is left of it.
void ShadowCall::leave() {
  call_.reset();
  place_.release();
}

// Empty: it was answered whole.
std::string ShadowCall::fault() const {
  if (!call_) return "no_ready_replica";
  if (is_late_) return "deadline_exceeded";
  if (call_->failed()) {
    const std::string& code = call_->failure().error.code();
    return code.empty() ? "upstream_error" : code;
  }
  const bool is_whole = !is_streamed() || end_.reached();
  const bool is_good = !fault_of(call_->outcome(), wanted_.adapter, errand_.route.digest());
  return is_whole && is_good ? "" : "upstream_error";
}

uint32_t ShadowCall::status() const {
  if (call_->has_head()) return call_->head().status != 0 ? call_->head().status : kWell;
  return call_->failed() ? call_->failure().error.status() : kTimedOut;
}

v1::ShadowAnswer ShadowCall::answer() {
  v1::ShadowAnswer answer;
  const auto now = parts_.clock.steady_now();
  answer.set_deployment(deployment().name);
  answer.set_adapter(wanted_.adapter);
  answer.set_error_code(fault());
  answer.set_queue_us(since_begun(call_ ? sent_ : now));
  answer.set_total_us(since_begun(now));
  answer.set_status(kUnavailable);
  if (!call_) return answer;
  answer.set_replica(replica_id_);
  const upstream::Head& head = call_->head();
  answer.set_model_version(head.model_version);
  answer.set_content_type(head.content_type);
  answer.set_status(status());
  if (first_ != base::SteadyTime{}) answer.set_ttft_us(since_begun(is_streamed() ? first_ : now));
  answer.set_cut(answer_.cut());
  answer.set_body(answer_.take());
  tell(call_->seen(), deployment(), *answer.mutable_usage());
  return answer;
}

uint32_t ShadowCall::since_begun(base::SteadyTime then) const {
  return microseconds_of(then - begun_);
}

}  // namespace penstock::proxy
