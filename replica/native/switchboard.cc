#include "switchboard.h"

#include <utility>

#include "delivery.h"
#include "errors.h"

namespace penstock::replica {
namespace {

v1::ErrorDetail refusal(v1::ReplicaState state) {
  if (state == v1::REPLICA_STATE_STARTING) {
    return unavailable("model_loading", "The replica is still loading its model; try another one.");
  }
  if (state == v1::REPLICA_STATE_DRAINING) {
    return unavailable("draining", "The replica is draining and takes no new calls.");
  }
  return unavailable("queue_full",
                     "The replica holds " + std::to_string(Switchboard::kMaxCalls) +
                         " calls, which is all it takes; try another one.",
                     1000);
}

}  // namespace

Switchboard::Switchboard(std::shared_ptr<CallHandler> handler) : handler_(std::move(handler)) {}

void Switchboard::set_handler(std::shared_ptr<CallHandler> handler) {
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

CallPtr Switchboard::make(uint64_t call_id, uint64_t credit_bytes, std::shared_ptr<Outlet> outlet) {
  auto call = std::make_shared<Call>(next_key_++, call_id, credit_bytes);
  call->outlet = std::move(outlet);
  return call;
}

Switchboard::Admission Switchboard::admit(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  if (call->cancelled) return Admission::kCancelled;
  const bool open = state_ == v1::REPLICA_STATE_READY && calls_.size() < kMaxCalls;
  if (!open && !call->internal) return Admission::kRefuse;
  calls_.emplace(call->key, call);
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
  }
  if (!admitted.empty()) hand_over(admitted);
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
  call->answer.close();
  {
    std::lock_guard lock(mutex_);
    call->cancelled = true;
    if (calls_.erase(call->key) == 0 || !call->handed_over) return;
  }
  handler()->cancel(call);
}

void Switchboard::room(std::span<const CallPtr> calls) {
  if (!calls.empty()) handler()->room(calls);
}

void Switchboard::ended(std::span<const CallPtr> calls) {
  if (calls.empty()) return;
  std::lock_guard lock(mutex_);
  for (const CallPtr& call : calls) calls_.erase(call->key);
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

void Switchboard::fail_all(const v1::ErrorDetail& error) {
  std::vector<CallPtr> calls;
  std::vector<CallPtr> handed_over;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, call] : calls_) {
      call->cancelled = true;
      calls.push_back(call);
      if (call->handed_over) handed_over.push_back(call);
    }
  }
  v1::ErrorDetail innocent = error;
  innocent.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  Delivery delivery;
  for (const CallPtr& call : calls) {
    delivery.fail(call, call->aboard ? error : innocent);
  }
  for (const CallPtr& call : handed_over) handler()->cancel(call);
}

std::shared_ptr<CallHandler> Switchboard::handler() const {
  std::lock_guard lock(mutex_);
  return handler_;
}

}  // namespace penstock::replica
