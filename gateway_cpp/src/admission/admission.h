// May this request go on? A pure function of what is asked and how things stand, called once for
// each request between resolve and select. Saying no is an answer, not an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"

namespace penstock::admission {

// What is asked for.
struct Ask {
  std::string_view deployment;
};

// How things stand, at this moment.
struct Load {
  bool draining = false;            // the gateway is going away
  std::uint32_t in_flight = 0;      // requests in this gateway, this one not counted
  std::uint32_t max_in_flight = 0;  // 0: no limit
  std::uint32_t ready = 0;          // ready replicas of the deployment
  std::uint32_t with_room = 0;      // of these, those that may be given one more call
  std::uint32_t starting = 0;       // replicas on their way
};

enum class Reason : std::uint8_t {
  kDraining,        // this gateway goes away: another one answers
  kGatewayFull,     // max_in_flight reached
  kModelLoading,    // none is ready, some are starting
  kNoReadyReplica,  // none is ready, none is starting
  kReplicasFull,    // each ready one has max_ongoing calls
};
std::string_view name(Reason reason);  // x-penstock-drop-reason, metrics

struct Admit {};

struct Reject {
  Reason reason;
  std::chrono::milliseconds retry_after;
};

using Decision = std::variant<Admit, Reject>;

Decision decide(const Ask& ask, const Load& load);

// What the client is told.
base::Error to_error(const Ask& ask, const Reject& reject);

}  // namespace penstock::admission
