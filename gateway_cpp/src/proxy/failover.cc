#include "proxy/failover.h"

namespace penstock::proxy {

namespace {

using Source = upstream::CallFailure::Source;

bool replica_died(const upstream::CallFailure& failure) {
  const auto& code = failure.error.code();
  return failure.source == Source::kLost || code == "engine_dead" || code == "engine_hung";
}

bool may_retry(const upstream::CallFailure& failure) {
  if (failure.error.fault() == v1::FAULT_CLIENT) return false;
  return failure.source != Source::kReplica ||
         failure.error.retry() == v1::RETRY_BEFORE_FIRST_TOKEN;
}

}  // namespace

Next Failover::after(const upstream::CallFailure& failure) {
  if (replica_died(failure)) ++deaths_;
  if (!may_retry(failure) || attempts() >= kMaxAttempts || deaths_ >= kMaxDeaths) {
    return Next::kGiveUp;
  }
  return Next::kTryAnother;
}

bool speaks_against_replica(const upstream::CallFailure& failure) {
  return failure.source != Source::kReplica || replica_died(failure);
}

}  // namespace penstock::proxy
