#include "proxy/shadow_copy.h"

#include <chrono>
#include <utility>

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

std::string id_of(const std::string& request_id, const routing::ShadowRule& rule, ShadowArm arm) {
  return request_id + "." + rule.uid + (arm == ShadowArm::kSelf ? ".self" : ".shadow");
}

std::string salt_of(const routing::ShadowRule& rule, ShadowArm arm) {
  return arm == ShadowArm::kSelf ? rule.cache_salt + ":self" : rule.cache_salt;
}

}  // namespace

ShadowCopy::ShadowCopy(const ShadowCopies::Parts& parts, ShadowCopies& copies,
                       std::shared_ptr<OpenPair> pair, ShadowArm arm)
    : parts_(parts),
      copies_(copies),
      pair_(std::move(pair)),
      sample_(pair_->sample()),
      rule_(pair_->rule()),
      arm_(arm),
      begun_(parts.clock.steady_now()),
      request_id_(id_of(sample_.pair.request_id(), rule_, arm)),
      cache_salt_(salt_of(rule_, arm)),
      patience_(parts.timers, signal_),
      again_(parts.timers, signal_),
      waker_(std::make_shared<WakeUp>(parts.io, signal_)),
      answer_(parts.budget),
      end_(sample_.endpoint->dialect) {}

ShadowCopy::~ShadowCopy() {
  waker_->leave();
  parts_.book.end(rule_);
}

void ShadowCopy::stop() {
  stopped_ = true;
  signal_.raise();
}

runtime::Awaitable<void> ShadowCopy::run() {
  const Gone gone = co_await repeat();
  if (stopped_) co_return;
  if (gone) {
    leave();
    pair_->lack(arm_, *gone);
  } else {
    auto told = answer();
    leave();
    pair_->answer(arm_, std::move(told), std::move(answer_));
  }
}

runtime::Awaitable<ShadowCopy::Gone> ShadowCopy::repeat() {
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

// Routes may be others than when the request came.
ShadowCopy::Gone ShadowCopy::enter() {
  if (arm_ == ShadowArm::kSelf) {
    route_ = sample_.named;
  } else {
    auto way =
        copies_.way_of(rule_, *sample_.tenant, sample_.may_degrade,
                       {.endpoint = sample_.endpoint->path, .tools = sample_.request.has_tools});
    if (const auto* why = std::get_if<ShadowOutcome>(&way)) return *why;
    route_ = std::get<routing::Route>(std::move(way));
  }
  dispatcher_ = parts_.dispatchers.of(*route_.deployment);
  if (!dispatcher_ || is_suspect()) return ShadowOutcome::kNotComparable;
  wanted_.adapter = route_.adapter();
  if (route_.deployment->budget_used_up || !reserve()) return ShadowOutcome::kBudget;
  return std::nullopt;
}

// An engine there may die of it, which nobody wants to know. A large body is not hashed for that:
// it would take the time of the others of its thread.
bool ShadowCopy::is_suspect() const {
  if (parts_.suspects.empty() || route_.deployment->managed) return false;
  if (sample_.body->size() > upstream::kLargeBodyBytes) return true;
  const auto standing = parts_.suspects.judge(fingerprint(), parts_.clock.wall_now());
  return !standing || *standing != admission::Standing::kClear;
}

admission::Fingerprint ShadowCopy::fingerprint() const {
  return admission::fingerprint_of(route_.deployment->uid, sample_.endpoint->path, *sample_.body);
}

// Nobody's request, nor a shadow of it, is to take another engine with it unawares.
void ShadowCopy::suspect() const {
  const routing::DeploymentRoute& deployment = *route_.deployment;
  parts_.log.warning(
      "a shadow was aboard an engine that died",
      {{"request_id", request_id_}, {"deployment", deployment.name}, {"replica_id", replica_id_}});
  parts_.suspects.died({.fingerprint = fingerprint(),
                        .deployment = deployment.name,
                        .deployment_uid = deployment.uid,
                        .path = std::string(sample_.endpoint->path),
                        .deaths = failover_.deaths(),
                        .until = {}},
                       parts_.clock.wall_now());
}

// Of the rule's money of the day, and of the budgets of the deployment.
bool ShadowCopy::reserve() {
  account_ = std::make_shared<Account>(parts_.clock, parts_.usage, parts_.book.payer(rule_));
  const openai::Request& request = sample_.request;
  const auto told =
      dispatcher_->appraise(sample_.body->size(), request.max_tokens, request.answers()).estimate;
  ask_ = day_ask_of(request, *sample_.endpoint, *route_.deployment, told);
  return !account_->reserve(told.tokens(), ask_, begun_) &&
         !account_->reserve_budget(*route_.deployment, ask_);
}

runtime::Awaitable<ShadowCopy::Gone> ShadowCopy::find_place() {
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
ShadowCopy::Gone ShadowCopy::absent() {
  const auto& deployments = parts_.routes.read()->deployments();
  const auto now = deployments.find(route_.deployment->name);
  if (now == deployments.end() || now->second->uid != route_.deployment->uid) {
    return ShadowOutcome::kNotComparable;
  }
  const bool may_come = now->second->availability == base::Availability::kLoading ||
                        now->second->availability == base::Availability::kScaledToZero;
  return may_come ? Gone(ShadowOutcome::kCandidateBusy) : std::nullopt;
}

void ShadowCopy::open() {
  const routing::Replica& replica = *place_.replica();
  sent_ = parts_.clock.steady_now();
  replica_id_ = replica.id().value;
  failover_.sent_to(replica.id());
  account_->open(*route_.deployment, wanted_.adapter, nullptr);
  const bool is_large = sample_.body->size() > upstream::kLargeBodyBytes;
  call_ = parts_.upstream.open({replica.id().value, replica.address(), replica.own_token()},
                               call_request(), signal_, is_large ? sample_.body : nullptr);
  call_->hold({.place = {}, .payer = account_, .seen = {}});
  const auto own = route_.deployment->limits.first_event_deadline;
  const auto limit = own.count() > 0 ? own : parts_.config.first_event_deadline;
  limit.count() > 0 ? patience_.arm(limit) : patience_.disarm();
}

upstream::CallRequest ShadowCopy::call_request() const {
  const routing::DeploymentRoute& deployment = *route_.deployment;
  const bool is_large = sample_.body->size() > upstream::kLargeBodyBytes;
  upstream::CallRequest request{
      .request_id = request_id_,
      .method = "POST",
      .path = sample_.endpoint->path,
      .body = is_large ? std::string_view() : std::string_view(*sample_.body),
      .model = sample_.request.model,
      .adapter = wanted_.adapter,
      .priority = admission::kShadowPriority,
      .tenant_salt = cache_salt_,
      .max_prompt_tokens = deployment.limits.max_prompt_tokens,
      .max_completion_tokens = longest_answer(deployment, sample_.request, *account_, ask_),
      .adapter_digest = route_.digest(),
      .adapter_wait_ms = wanted_.adapter.empty() ? 0 : kAdapterWaitMs};
  set_prices(request, deployment);
  return request;
}

runtime::Awaitable<ShadowCopy::Gone> ShadowCopy::hear_out() {
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

void ShadowCopy::take_news() {
  if (!call_->has_bytes()) return;
  if (first_ == base::SteadyTime{}) first_ = parts_.clock.steady_now();
  call_->take(payload_);
  answer_.keep(payload_.bytes());
  if (sample_.request.delivery == openai::Delivery::kStream) end_.note(payload_.bytes());
  call_->wrote(payload_.size());
  payload_.clear();
  const auto silence = parts_.config.silence;
  silence.count() > 0 ? patience_.arm(silence) : patience_.disarm();
}

// As a client's request is, before its first byte.
bool ShadowCopy::is_tried_again() {
  if (stopped_ || !call_->failed()) return false;
  const bool has_engine = !route_.deployment->managed;
  const Next next = failover_.after(call_->failure(), has_engine);
  if (has_engine && engine_died_with(call_->failure())) suspect();
  if (next == Next::kGiveUp || first_ != base::SteadyTime{}) return false;
  if (!dispatcher_->is_ready_besides(failover_.tried())) return false;
  place_.release();
  return true;
}

// Nobody needs wait for what is left of it.
void ShadowCopy::leave() {
  call_.reset();
  place_.release();
}

// Empty: it was answered whole.
std::string ShadowCopy::fault() const {
  if (!call_) return "no_ready_replica";
  if (is_late_) return "deadline_exceeded";
  if (call_->failed()) {
    const std::string& code = call_->failure().error.code();
    return code.empty() ? "upstream_error" : code;
  }
  const bool is_streamed = sample_.request.delivery == openai::Delivery::kStream;
  const bool is_whole = !is_streamed || end_.reached();
  const bool is_good = !fault_of(call_->outcome(), wanted_.adapter, route_.digest());
  return is_whole && is_good ? "" : "upstream_error";
}

uint32_t ShadowCopy::status() const {
  if (call_->has_head()) return call_->head().status != 0 ? call_->head().status : kWell;
  return call_->failed() ? call_->failure().error.status() : kTimedOut;
}

v1::ShadowAnswer ShadowCopy::answer() {
  v1::ShadowAnswer answer;
  const auto now = parts_.clock.steady_now();
  const bool is_streamed = sample_.request.delivery == openai::Delivery::kStream;
  answer.set_deployment(route_.deployment->name);
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
  if (first_ != base::SteadyTime{}) answer.set_ttft_us(since_begun(is_streamed ? first_ : now));
  answer.set_cut(answer_.cut());
  answer.set_body(answer_.take());
  tell(call_->seen(), *route_.deployment, *answer.mutable_usage());
  return answer;
}

uint32_t ShadowCopy::since_begun(base::SteadyTime then) const {
  return microseconds_of(then - begun_);
}

}  // namespace penstock::proxy
