#include "switchboard.h"

#include <chrono>
#include <utility>

#include "delivery.h"
#include "errors.h"

namespace penstock::replica {
namespace {

using Clock = std::chrono::steady_clock;

v1::ErrorDetail refusal(v1::ReplicaState state) {
  if (state == v1::REPLICA_STATE_STARTING) {
    return unavailable("model_loading", "The replica is still loading its model; try another one.");
  }
  if (state == v1::REPLICA_STATE_DRAINING) {
    return unavailable("draining", "The replica is draining and takes no new calls.");
  }
  if (state == v1::REPLICA_STATE_ASLEEP) {
    return unavailable("asleep", "The replica sleeps and takes no calls; try another one.");
  }
  return unavailable("queue_full",
                     "The replica holds " + std::to_string(Switchboard::kMaxCalls) +
                         " calls, which is all it takes; try another one.",
                     1000);
}

}  // namespace

Switchboard::Switchboard(std::shared_ptr<CallHandler> handler, std::function<void()> changed)
    : changed_(std::move(changed)), handler_(std::move(handler)) {}

void Switchboard::set_handler(std::shared_ptr<CallHandler> handler) {
  handler->watch(changed_);
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

std::shared_ptr<Gateway> Switchboard::gateway(const std::string& id) {
  std::lock_guard lock(mutex_);
  return gateways_.enter(id, Clock::now());
}

CallPtr Switchboard::make(uint64_t call_id, uint64_t credit_bytes, std::shared_ptr<Outlet> outlet,
                          std::shared_ptr<Gateway> gateway) {
  auto call = std::make_shared<Call>(next_key_++, call_id, credit_bytes);
  call->outlet = std::move(outlet);
  call->gateway = std::move(gateway);
  return call;
}

Switchboard::Admission Switchboard::admit(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  if (call->cancelled) return Admission::kCancelled;
  const bool open = state_ == v1::REPLICA_STATE_READY && calls_.size() < kMaxCalls;
  if (!open && !call->internal) return Admission::kRefuse;
  calls_.emplace(call->key, call);
  Gateways::began(call->gateway.get());
  return Admission::kStart;
}

void Switchboard::start(std::span<const CallPtr> calls) {
  Delivery delivery;
  std::vector<CallPtr> admitted;
  admitted.reserve(calls.size());
  for (const CallPtr& call : calls) {
    const Admission admission = admit(call);
    if (admission == Admission::kStart) admitted.push_back(call);
    if (admission == Admission::kRefuse) delivery.fail(call, refusal(state_));
    if (admission == Admission::kCancelled) delivery.end_cancelled(call, {});
  }
  if (admitted.empty()) return;
  hand_over(admitted);
  changed_();
}

void Switchboard::hand_over(std::span<const CallPtr> calls) {
  const std::shared_ptr<CallHandler> to = handler();
  to->start(calls);
  std::vector<CallPtr> cancelled;
  {
    std::lock_guard lock(mutex_);
    for (const CallPtr& call : calls) {
      call->handed_over = true;
      if (call->cancelled) cancelled.push_back(call);
    }
  }
  for (const CallPtr& call : cancelled) to->cancel(call);
}

void Switchboard::cancel(const CallPtr& call) {
  Delivery delivery;
  delivery.cancel(call);
  if (first_cancel(call, false)) handler()->cancel(call);
}

void Switchboard::abandon(const CallPtr& call) {
  call->answer.close();
  if (first_cancel(call, true)) handler()->cancel(call);
  changed_();
}

// Whether the handler has the call, and has not been told yet.
bool Switchboard::first_cancel(const CallPtr& call, bool over) {
  std::lock_guard lock(mutex_);
  const bool first = !std::exchange(call->cancelled, true);
  const bool known = calls_.contains(call->key);
  if (over) forget(call);
  return first && known && call->handed_over;
}

void Switchboard::forget(const CallPtr& call) {
  if (calls_.erase(call->key) > 0) Gateways::ended(call->gateway.get(), Clock::now());
}

void Switchboard::room(std::span<const CallPtr> calls) {
  if (!calls.empty()) handler()->room(calls);
}

void Switchboard::ended(std::span<const CallPtr> calls) {
  if (calls.empty()) return;
  {
    std::lock_guard lock(mutex_);
    for (const CallPtr& call : calls) forget(call);
  }
  changed_();
}

CallPtr Switchboard::find(uint64_t key) const {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(key);
  return found == calls_.end() ? nullptr : found->second;
}

size_t Switchboard::running() const {
  std::lock_guard lock(mutex_);
  return calls_.size();
}

void Switchboard::tell_figures(v1::Load* load) const { handler()->tell_figures(load); }

void Switchboard::tell_calls(const Gateway* to, v1::Load* load) {
  std::lock_guard lock(mutex_);
  const auto calls = static_cast<uint32_t>(calls_.size());
  load->set_calls(calls);
  load->set_calls_elsewhere(calls - (to != nullptr ? to->calls : 0));
  load->set_gateways(gateways_.count(to, Clock::now()));
}

void Switchboard::fail_all(const v1::ErrorDetail& error) {
  std::vector<CallPtr> calls;
  std::vector<CallPtr> handed_over;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, call] : calls_) {
      const bool first = !std::exchange(call->cancelled, true);
      calls.push_back(call);
      if (first && call->handed_over) handed_over.push_back(call);
    }
  }
  v1::ErrorDetail innocent = error;
  innocent.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  const std::shared_ptr<CallHandler> from = handler();
  Delivery delivery;
  for (const CallPtr& call : calls) {
    delivery.fail(call, call->aboard ? error : innocent, from->cost(call));
  }
  for (const CallPtr& call : handed_over) from->cancel(call);
}

std::shared_ptr<CallHandler> Switchboard::handler() const {
  std::lock_guard lock(mutex_);
  return handler_;
}

}  // namespace penstock::replica
