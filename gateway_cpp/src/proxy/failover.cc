#include "proxy/failover.h"

#include <algorithm>
#include <ranges>
#include <string_view>

namespace penstock::proxy {

namespace {

using Source = upstream::CallFailure::Source;

constexpr std::string_view kDead = "engine_dead";
constexpr std::string_view kKilled = "engine_killed";
constexpr std::string_view kHung = "engine_hung";

}  // namespace

bool may_retry(const upstream::CallFailure& failure) {
  if (failure.error.fault() == v1::FAULT_CLIENT) return false;
  return failure.source != Source::kReplica ||
         failure.error.retry() == v1::RETRY_BEFORE_FIRST_TOKEN;
}

admission::EngineEnd end_of(const upstream::CallFailure& failure) {
  if (failure.source != Source::kReplica) return admission::EngineEnd::kLost;
  if (failure.error.code() == kKilled) return admission::EngineEnd::kKilled;
  return failure.error.code() == kHung ? admission::EngineEnd::kHung
                                       : admission::EngineEnd::kCrashed;
}

bool engine_died(const upstream::CallFailure& failure) {
  const auto& code = failure.error.code();
  return failure.source == Source::kReplica && (code == kDead || code == kKilled || code == kHung);
}

bool engine_died_with(const upstream::CallFailure& failure) {
  return engine_died(failure) && failure.error.retry() != v1::RETRY_BEFORE_FIRST_TOKEN;
}

void Failover::elsewhere() {
  elsewhere_ = attempts();
  deaths_elsewhere_ += static_cast<unsigned>(deaths_.size());
  tried_.clear();
  broken_ = 0;
  deaths_.clear();
  reached_any_ = false;
}

unsigned Failover::crashes() const {
  return static_cast<unsigned>(
      std::ranges::count(deaths_, admission::EngineEnd::kCrashed, &admission::EngineDeath::end));
}

void Failover::goes_on() {
  const auto refused = tried_.begin() + broken_;
  const auto last = tried_.end() - 1;
  elsewhere_ += static_cast<unsigned>(last - refused);
  tried_.erase(refused, last);
  ++broken_;
}

Next Failover::after(const upstream::CallFailure& failure, bool has_engine) {
  reached_any_ = reached_any_ || failure.source != Source::kUnreachable;
  const bool died = has_engine && (failure.source == Source::kLost || engine_died_with(failure));
  if (died) deaths_.push_back({.replica_id = tried_.back().value, .end = end_of(failure)});
  if (!may_retry(failure) || !is_left() || (died && is_deadly())) {
    return Next::kGiveUp;
  }
  return Next::kTryAnother;
}

std::optional<routing::Failure> blame_of(const upstream::CallFailure& failure) {
  if (failure.source == Source::kUnreachable) return routing::Failure::kUnreachable;
  if (failure.source != Source::kReplica || engine_died(failure)) return routing::Failure::kLost;
  if (failure.error.fault() == v1::FAULT_CLIENT) return std::nullopt;
  const uint32_t status = failure.error.status();
  constexpr uint32_t kNotNow = 503;  // it drains, its queue is full, or it cannot load the adapter
  if (status < 500 || status == kNotNow) return std::nullopt;
  return routing::Failure::kBadAnswer;
}

}  // namespace penstock::proxy
