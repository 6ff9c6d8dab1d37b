// May this request go on? A pure function of what is asked and how things stand, called once for
// each request between resolve and select. Saying no is an answer, not an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/availability.h"
#include "base/error.h"

namespace penstock::admission {

// What is asked for.
struct Ask {
  std::string_view deployment;
  std::string_view why_unavailable = {};  // what the head says of it, for a person
};

// How things stand, at this moment.
struct Load {
  bool draining = false;            // the gateway is going away, and its drain's time is over
  std::uint32_t in_flight = 0;      // requests in this gateway, this one not counted
  std::uint32_t max_in_flight = 0;  // 0: no limit
  std::uint32_t ready = 0;          // ready replicas of the deployment
  std::uint32_t with_room = 0;      // of these, those that may be given one more call
  std::uint32_t starting = 0;       // replicas on their way
  base::Availability availability = base::Availability::kUnknown;  // of the deployment
  std::optional<std::chrono::milliseconds> ready_in;  // until a replica is expected to be ready
};

enum class Reason : std::uint8_t {
  kDraining,        // this gateway goes away: another one answers
  kGatewayFull,     // max_in_flight reached
  kModelLoading,    // none is ready, some are starting
  kNoReadyReplica,  // none is ready, none is starting
  kReplicasFull,    // each ready one has max_ongoing calls
  kScaledToZero,    // nobody wants replicas of it
  kFailed,          // no replica will come by itself
};
std::string_view name(Reason reason);  // x-penstock-drop-reason, metrics

struct Admit {};

struct Reject {
  Reason reason;
  std::chrono::milliseconds retry_after;  // 0: trying again does not help
};

using Decision = std::variant<Admit, Reject>;

Decision decide(const Ask& ask, const Load& load);

// What the client is told.
base::Error to_error(const Ask& ask, const Reject& reject);

}  // namespace penstock::admission
