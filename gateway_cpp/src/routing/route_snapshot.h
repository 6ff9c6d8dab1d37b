// The route snapshot: a whole, versioned map from deployments to replicas. Immutable values with no
// knowledge of the wire; control_plane makes them from protobuf.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/availability.h"
#include "base/clock.h"
#include "base/slo.h"
#include "routing/prices.h"

namespace penstock::routing {

struct ReplicaId {
  std::string value;
  auto operator<=>(const ReplicaId&) const = default;
};

// An immutable adapter version, which every deployment of its family may be asked for.
struct AdapterVersion {
  std::string name;              // "pirate@1"
  std::string digest = {};       // SHA-256 of its content, hexadecimal; empty: not known
  std::string base_family = {};  // as in DeploymentRoute
  std::int64_t created = 0;      // seconds since 1970
  bool operator==(const AdapterVersion&) const = default;
};

// A version's share of an alias: its weight over the sum of all.
struct AdapterShare {
  std::string adapter;  // "pirate@1"
  std::uint32_t weight = 1;
  bool operator==(const AdapterShare&) const = default;
};

// A movable name for immutable adapter versions.
struct AdapterAlias {
  std::string alias;                      // "pirate"
  std::string adapter;                    // "pirate@1", the first of its shares
  std::vector<AdapterShare> shares = {};  // of its sessions, by version; empty: all have `adapter`
  bool operator==(const AdapterAlias&) const = default;
};

// What a deployment's requests may take. The defaults hold where its head says nothing of limits.
struct Limits {
  std::uint32_t max_ongoing = 0;   // calls sent to one replica at a time; 0: its capacity
  std::uint32_t max_queued = 100;  // requests waiting in one gateway; 0: nobody waits
  std::chrono::milliseconds queue_deadline{30'000};   // for a replica; 0: none
  std::chrono::milliseconds first_event_deadline{0};  // from send to the first event; 0: none
  std::chrono::milliseconds wait_budget{0};  // estimated wait above which it is refused; 0: none
  float kv_pressure = 0.93F;  // share of KV in use above which a replica gets nothing new; 0: none
  std::uint32_t max_prompt_tokens = 0;      // 0: the model's
  std::uint32_t max_completion_tokens = 0;  // of each choice; 0: the model's
  std::uint32_t max_n = 16;                 // choices of one request; 0: no limit
  // A replica that has work and makes no tokens for so long is suspected; 0: never.
  std::chrono::milliseconds progress_deadline{0};
  bool resume = false;                       // an answer whose replica is lost goes on at another
  std::chrono::milliseconds resume_wait{0};  // for one that can
  bool operator==(const Limits&) const = default;
};

// A share of a deployment's requests that another deployment answers, or one revision of its own.
struct CanaryWeight {
  std::string deployment;
  std::uint32_t permille = 0;        // thousandths
  std::string template_digest = {};  // of the deployment's own replicas; empty: another deployment
  bool operator==(const CanaryWeight&) const = default;
};

// A canary whose arms are counted, by session. Its share stands where all shares do: in the
// deployment's canaries, or its alias's shares.
struct CanaryRule {
  std::string uid;             // of this run of the canary
  std::string name = {};       // for people
  std::uint32_t step = 0;      // from 1; counts of another begin at 0
  std::string alias = {};      // of the deployment, where that is the target; empty: it itself
  std::string candidate = {};  // one of the three says who: another deployment,
  std::string candidate_adapter = {};  // a version, "name@version", beside stable_adapter,
  std::string candidate_digest = {};   // replicas of this template digest
  std::string stable_adapter = {};     // "name@version", where the target is an alias
  std::uint32_t warmup_requests = 0;   // of each replica, whose times are not counted
  bool operator==(const CanaryRule&) const = default;
};

// What is tried in place of an answer that a deployment cannot give.
struct Rung {
  enum class Kind : std::uint8_t {
    kTrim,      // once more, with a shorter prompt
    kFallback,  // another deployment
    kReject,    // nothing: whatever follows counts for nothing
  };
  Kind kind = Kind::kReject;
  std::string deployment = {};  // of a fallback
  bool operator==(const Rung&) const = default;
};

// What is tried for one reason, in this order.
struct Ladder {
  std::string
      reason;  // as admission::DegradeReason names it; empty: any without a ladder of its own
  std::vector<Rung> rungs;
  bool operator==(const Ladder&) const = default;
};

// Requests of a deployment that are repeated elsewhere once they were answered, so that both
// answers can be compared; or that are recorded, where there is no candidate.
struct ShadowRule {
  std::string uid;  // tells namesakes apart
  std::string name = {};
  std::string primary_alias = {};      // of the deployment; empty: its base model
  std::string candidate = {};          // deployment; empty: nobody is asked
  std::string candidate_adapter = {};  // "name@version"; empty: its base model
  std::uint64_t seed = 0;
  std::uint32_t share_permille = 0;  // thousandths of requests, or of sessions
  bool by_session = false;
  std::vector<std::string> tenants = {};    // ids; empty: all
  std::vector<std::string> endpoints = {};  // paths; empty: all
  std::uint32_t max_concurrent = 0;         // shadows under way in this gateway
  std::uint32_t max_per_minute = 0;         // that begin in this gateway; 0: any number
  std::uint32_t self_permille = 0;  // of those that are sampled: the primary is asked again, too
  std::string cache_salt = {};
  std::uint64_t nanousd_per_day = 0;  // of all gateways together; 0: no limit
  bool budget_used_up = false;
  std::string embedder = {};  // deployment that may be asked about its pairs; empty: none
  std::string judge = {};     // likewise

  bool is_recording() const { return candidate.empty(); }
  bool operator==(const ShadowRule&) const = default;
};

// Who is asked where a deployment's requests go, where its policy is `program`.
struct Program {
  std::string digest;                      // of what runs
  std::string name = {};                   // for people
  std::string args = {};                   // JSON object
  std::vector<std::string> uses = {};      // engine calls that it may make: "prep_recv"
  bool sees_tokens = false;                // it is given token ids and text
  std::chrono::milliseconds deadline{20};  // of its own time for a decision
  std::chrono::milliseconds transfer_deadline{10'000};  // of each engine call
  bool operator==(const Program&) const = default;
};

struct DeploymentRoute {
  std::string name;                 // "model" in requests
  std::string model;                // what the engine loaded
  std::int64_t created = 0;         // seconds since 1970
  std::uint32_t max_model_len = 0;  // tokens; 0: not known
  std::vector<AdapterAlias> adapters;
  Limits limits;
  std::uint64_t generation = 0;  // grows with each change of its spec
  std::string uid = {};          // tells namesakes apart; empty: an older head
  base::Availability availability = base::Availability::kUnknown;
  std::string availability_detail = {};     // for a person: why it cannot answer
  base::WallTime expected_ready_at = {};    // where it is loading; the epoch: not known
  std::vector<std::string> endpoints = {};  // paths that it serves; empty: not known
  std::string selection_policy = {};        // by name, see policy.h; empty: power_of_two
  bool keeps_sessions = false;              // at the revision that they began with
  std::vector<CanaryWeight> canary = {};
  std::string base_family = {};  // which adapters fit; empty: not known, and none does
  std::vector<Ladder> ladders = {};
  bool managed = false;         // a provider answers: no engine that a request could take along
  bool trims = false;           // what is too long loses its oldest turns instead of being refused
  bool without_tools = false;   // its answers call none
  bool budget_used_up = false;  // it has had its money or tokens of the day
  base::WallTime budget_resets_at = {};  // the epoch: it has no budget
  std::uint64_t budget_tokens = 0;       // of a day, at all gateways together; 0: none
  std::uint64_t budget_nanousd = 0;      // likewise; billionths of a US dollar
  Prices prices = {};  // where it is managed its replicas reckon, and this is an estimate
  std::vector<ShadowRule> shadows = {};       // of which it is the primary
  std::vector<CanaryRule> canary_rules = {};  // of which it, or an alias of it, is the target
  base::Slo slo = {};
  std::optional<Program> program = {};  // nothing: its policy is another
  bool operator==(const DeploymentRoute&) const = default;
};

// What a replica is there for, of a deployment whose program has use for that.
enum class Role : std::uint8_t { kNone, kPrefill, kDecode };

enum class ReplicaState : std::uint8_t { kStarting, kReady, kDraining };

struct ReplicaRoute {
  ReplicaId id;
  std::string deployment;
  std::string address;  // host:port of its Inference service
  ReplicaState state = ReplicaState::kStarting;
  std::uint32_t capacity = 0;         // calls it runs at once; 0: not known
  std::vector<std::string> adapters;  // loaded, "name@version"
  std::string deployment_uid = {};    // nothing is sent to a replica of another uid
  std::string node = {};              // machine that it runs on; empty: not known
  std::string zone = {};              // of that machine; empty: not known
  bool own_token = false;             // it asks its callers for a token of its own
  std::uint32_t wakes = 0;            // of its process: after each its prefix cache is empty
  std::string template_digest = {};   // of what it runs; empty: not known
  Role role = Role::kNone;
  bool microserving = false;      // it moves KV
  base::WallTime hand_over_at{};  // its streams go on at others from then on; none: they stay
  bool operator==(const ReplicaRoute&) const = default;
};

// A machine whose agent reports accelerators that its driver reaches no more.
struct LostAccelerators {
  std::string node;
  std::string detail = {};  // for a person: which
  bool operator==(const LostAccelerators&) const = default;
};

struct RouteSnapshot {
  std::uint64_t version = 0;
  std::vector<DeploymentRoute> deployments;
  std::vector<ReplicaRoute> replicas;
  std::vector<AdapterVersion> adapters = {};  // all that may be named; none: an older head's, maybe
  std::vector<std::string> ended_keys = {};   // ids: what they have under way ends
  std::string comparer = {};  // host:port of who compares shadows' answers; empty: nobody does
  std::vector<LostAccelerators> lost_accelerators = {};
  bool operator==(const RouteSnapshot&) const = default;
};

}  // namespace penstock::routing
