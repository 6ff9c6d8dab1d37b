// May this request go on? Pure functions of what is asked and how things stand. Saying no is an
// answer, not an error. Reasons are looked at in the order of DropReason, the first no wins: those
// of the door before a tenant's limits (TenantMeter), the deployment's after them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/availability.h"
#include "base/error.h"
#include "base/priority.h"
#include "routing/route_snapshot.h"

namespace penstock::admission {

enum class DropReason : std::uint8_t {
  kDraining,        // this gateway goes away: another one answers
  kGatewayFull,     // it serves as many requests as it may
  kRateLimited,     // the tenant's limit of a minute, or of requests under way
  kQuota,           // the tenant has had its tokens of the day
  kBudget,          // the deployment has had its money or tokens of the day, or they are reserved
  kScaledToZero,    // nobody wants replicas of it
  kFailed,          // no replica will come by itself
  kNoReadyReplica,  // none is ready, none is starting
  kModelLoading,    // none is ready, some are starting
  kMemoryPressure,  // each ready one has more of its KV cache in use than it may
  kTokenBudget,     // more tokens than the deployment takes
  kQueueFull,       // as many wait as may
  kWaitExceeded,    // the wait would be longer than it may
  kQueueDeadline,   // in the queue: no place came free in time
  kClientGone,      // in the queue: the client left
};
inline constexpr std::size_t kDropReasons = 15;
std::string_view name(DropReason reason);  // x-penstock-drop-reason, metrics

struct Refusal {
  DropReason reason;
  std::chrono::milliseconds retry_after{0};  // 0: trying again does not help
  std::string detail = {};      // the limit and the value; empty: the reason says it all
  std::string_view param = {};  // the field at fault
  bool may_pass = false;  // it is no more so once requests under way have cost less than reserved
};

// How the gateway stands.
struct DoorLoad {
  bool draining = false;            // it goes away, and its drain's time is over
  std::uint32_t in_flight = 0;      // requests in this gateway, this one not counted
  std::uint32_t max_in_flight = 0;  // 0: no limit
};

std::optional<Refusal> decide_at_door(const DoorLoad& load);

// What is asked for.
struct DeploymentAsk {
  std::string_view deployment;
  std::string_view why_unavailable = {};  // what the head says of it, for a person
  base::Priority priority = base::Priority::kNormal;
  std::uint32_t least_prompt = 0;  // TokenEstimator::least_prompt
  std::optional<std::uint64_t> max_tokens = {};
  std::uint64_t choices = 1;
  routing::Limits limits = {};  // high priority has a fifth more of max_queued and wait_budget
  bool trims = false;           // a prompt that is too long loses its oldest turns
  bool has_rung = false;        // another deployment takes it where it would wait too long
  std::string_view prompt_field = "messages";  // as the endpoint calls them
  std::string_view max_tokens_field = "max_tokens";
};

// How the deployment stands, at this moment.
struct DeploymentLoad {
  std::uint32_t ready = 0;           // replicas
  std::uint32_t with_room = 0;       // of these, those that may be given this request now
  std::uint32_t under_pressure = 0;  // of these, those above kv_pressure
  std::uint32_t starting = 0;        // replicas on their way
  std::uint32_t queued = 0;          // that wait in this gateway
  std::uint32_t due = 0;             // refused before it, and due back ahead of it
  std::chrono::milliseconds estimated_wait{0};  // WaitModel::estimate for this request
  std::chrono::milliseconds wait_within{0};     // that nearly all who are told that estimate wait
  std::chrono::milliseconds wait_for_due{0};    // by which those that are due would prolong it
  bool wait_is_guessed = false;  // nobody has shown yet how long calls take: no reason to refuse
  base::Availability availability = base::Availability::kUnknown;
  std::optional<std::chrono::milliseconds> ready_in =
      {};  // until a replica is expected to be ready
  std::optional<std::chrono::milliseconds> budget_back_in = {};  // where its budget is used up
  bool turns_away = false;  // as turns_away() said of the request before
};

struct Admitted {};
struct Queued {
  std::chrono::milliseconds estimated_wait;
};
using Placement = std::variant<Admitted, Queued, Refusal>;

// Whether requests that another deployment takes are sent away for the wait: from the first one
// that would wait longer than it may, until one would wait less than four fifths of that. `before`:
// what this said of the last one.
bool turns_away(bool before, std::chrono::milliseconds wait, std::chrono::milliseconds budget);
// What it will hardly be longer than: what a budget for waits is held against.
std::chrono::milliseconds longest_wait(const DeploymentLoad& load);
// What this request's wait may be; 0: anything.
std::chrono::milliseconds wait_budget(const DeploymentAsk& ask);

// From kBudget to kWaitExceeded. Admitted: one with room takes it and nobody waits.
Placement decide_place(const DeploymentAsk& ask, const DeploymentLoad& load);

// What a deployment's ledger says against a request, as the deployment says it.
Refusal beyond_budget(Refusal of_day);

// What comes out for those that are in the queue. `estimated_wait`: for one that came now.
Refusal queue_deadline_over(std::chrono::milliseconds waited,
                            std::chrono::milliseconds estimated_wait);

// What the client is told. `why_unavailable` is said of deployments that cannot answer.
base::Error refusal_error(std::string_view deployment, const Refusal& refusal,
                          std::string_view why_unavailable = {});

// What clients are asked to wait, from 1 s to 60 s: more than that, and some never come back.
std::chrono::milliseconds retry_in(std::chrono::milliseconds wait);

}  // namespace penstock::admission
