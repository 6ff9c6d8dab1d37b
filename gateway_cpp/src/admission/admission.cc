#include "admission/admission.h"

#include <algorithm>
#include <array>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<std::string_view, 7> kNames = {
    "draining",      "gateway_full",   "model_loading",    "no_ready_replica",
    "replicas_full", "scaled_to_zero", "deployment_failed"};
constexpr milliseconds kLeast = seconds(1);
constexpr milliseconds kMost = seconds(60);

// Nothing is ready: why, and for how long.
Reject without_replica(const Load& load) {
  const milliseconds ready_in = std::clamp(load.ready_in.value_or(seconds(5)), kLeast, kMost);
  switch (load.availability) {
    case base::Availability::kScaledToZero:
      return Reject{Reason::kScaledToZero, milliseconds(0)};
    case base::Availability::kFailed:
      return Reject{Reason::kFailed, milliseconds(0)};
    case base::Availability::kLoading:
      return Reject{Reason::kModelLoading, ready_in};
    case base::Availability::kServing:
    case base::Availability::kUnknown:
      break;
  }
  if (load.starting > 0) return Reject{Reason::kModelLoading, ready_in};
  return Reject{Reason::kNoReadyReplica, seconds(2)};
}

std::string because(std::string_view detail) {
  return detail.empty() ? std::string() : ": " + std::string(detail);
}

}  // namespace

std::string_view name(Reason reason) { return kNames[static_cast<std::size_t>(reason)]; }

Decision decide(const Ask& /*ask*/, const Load& load) {
  if (load.draining) return Reject{Reason::kDraining, seconds(1)};
  if (load.max_in_flight != 0 && load.in_flight >= load.max_in_flight) {
    return Reject{Reason::kGatewayFull, seconds(1)};
  }
  if (load.ready == 0) return without_replica(load);
  if (load.with_room == 0) return Reject{Reason::kReplicasFull, seconds(1)};
  return Admit{};
}

base::Error to_error(const Ask& ask, const Reject& reject) {
  const std::string model = "`" + std::string(ask.deployment) + "`";
  base::Error error = [&] {
    switch (reject.reason) {
      case Reason::kDraining:
        return base::make_error(base::Kind::kDraining,
                                "this gateway is shutting down; try again, another one answers");
      case Reason::kGatewayFull:
        return base::make_error(base::Kind::kOverloaded,
                                "this gateway serves as many requests as it may; try again");
      case Reason::kModelLoading:
        return base::make_error(base::Kind::kModelLoading,
                                "model " + model + " is still loading; try again in a few seconds");
      case Reason::kReplicasFull:
        return base::make_error(base::Kind::kShedLoad,
                                "every replica of " + model + " is busy; try again");
      case Reason::kScaledToZero:
        return base::make_error(base::Kind::kScaledToZero,
                                "model " + model + " is scaled to 0 replicas" +
                                    because(ask.why_unavailable) +
                                    "; it answers once an operator gives it replicas");
      case Reason::kFailed:
        return base::make_error(
            base::Kind::kDeploymentFailed,
            "model " + model + " has failed" + because(ask.why_unavailable) + "; ask its operator");
      case Reason::kNoReadyReplica:
        break;
    }
    return base::make_error(base::Kind::kOverloaded,
                            "no replica of " + model + " is ready; try again in a few seconds");
  }();
  error.drop_reason = name(reject.reason);
  error.retry_after = reject.retry_after;
  return error;
}

}  // namespace penstock::admission
