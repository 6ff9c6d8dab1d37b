#include "admission/admission.h"

#include <array>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<std::string_view, 5> kNames = {"draining", "gateway_full", "model_loading",
                                                    "no_ready_replica", "replicas_full"};

}  // namespace

std::string_view name(Reason reason) { return kNames[static_cast<std::size_t>(reason)]; }

Decision decide(const Ask& /*ask*/, const Load& load) {
  if (load.draining) return Reject{Reason::kDraining, seconds(1)};
  if (load.max_in_flight != 0 && load.in_flight >= load.max_in_flight) {
    return Reject{Reason::kGatewayFull, seconds(1)};
  }
  if (load.ready == 0) {
    if (load.starting > 0) return Reject{Reason::kModelLoading, seconds(5)};
    return Reject{Reason::kNoReadyReplica, seconds(2)};
  }
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
