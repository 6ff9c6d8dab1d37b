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

bool Switchboard::admit(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  const bool open = state_ == v1::REPLICA_STATE_READY && calls_.size() < kMaxCalls;
  if (open || call->internal) calls_.emplace(call->key, call);
  return open || call->internal;
}

void Switchboard::start(std::span<const CallPtr> calls) {
  Delivery delivery;
  std::vector<CallPtr> admitted;
  admitted.reserve(calls.size());
  for (const CallPtr& call : calls) {
    if (admit(call)) {
      admitted.push_back(call);
    } else {
      delivery.fail(call, refusal(state_));
    }
  }
  if (!admitted.empty()) handler()->start(admitted);
}

void Switchboard::cancel(const CallPtr& call) {
  call->answer.close();
  {
    std::lock_guard lock(mutex_);
    if (calls_.erase(call->key) == 0) return;
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
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, call] : calls_) calls.push_back(call);
  }
  Delivery delivery;
  for (const CallPtr& call : calls) {
    delivery.fail(call, error);
    handler()->cancel(call);
  }
}

std::shared_ptr<CallHandler> Switchboard::handler() const {
  std::lock_guard lock(mutex_);
  return handler_;
}

}  // namespace penstock::replica
