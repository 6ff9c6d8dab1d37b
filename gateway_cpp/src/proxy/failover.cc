#include "proxy/failover.h"

namespace penstock::proxy {

namespace {

using Source = upstream::CallFailure::Source;

bool may_retry(const upstream::CallFailure& failure) {
  if (engine_died(failure) || failure.error.fault() == v1::FAULT_CLIENT) return false;
  return failure.source != Source::kReplica ||
         failure.error.retry() == v1::RETRY_BEFORE_FIRST_TOKEN;
}

}  // namespace

bool engine_died(const upstream::CallFailure& failure) {
  const auto& code = failure.error.code();
  return failure.source == Source::kReplica && (code == "engine_dead" || code == "engine_hung");
}

void Failover::elsewhere() {
  elsewhere_ = attempts();
  tried_.clear();
  reached_any_ = false;
}

Next Failover::after(const upstream::CallFailure& failure) {
  reached_any_ = reached_any_ || failure.source != Source::kUnreachable;
  if (failure.source == Source::kLost || engine_died(failure)) deaths_.push_back(tried_.back());
  if (!may_retry(failure) || tried_.size() >= kMaxAttempts || deaths_.size() >= kMaxDeaths) {
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
