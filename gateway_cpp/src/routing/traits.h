// What a ReplicaSet is told and what it tells: values alone.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "routing/route_snapshot.h"

namespace penstock::routing {

// Where this gateway runs. Empty: not told, and no replica is near.
struct GatewayPlace {
  std::string node;
  std::string zone;
};

// What one request brings to the choice of its replica. Valid as long as what it refers to.
struct Traits {
  std::string_view adapter = {};  // "name@version"; empty: the base model
  std::uint64_t session = 0;      // hash of what it is sticky by; 0: nothing
  std::uint64_t share = 0;        // hash by which canaries have their shares; 0: they have none
  bool rest = false;              // for none but those revisions that have no share
  bool patient = false;           // it can wait for its revision
  // The number of a config_hash: it goes on with an answer that a replica of that began, whatever
  // shares and sessions say. 0: it begins.
  std::uint32_t continues = 0;
  bool runs_on = false;  // it has its answer from another one meanwhile, and need not hurry
  // Chained hashes of the canonical prefix's blocks: [i] stands for blocks 0..i.
  std::span<const std::uint64_t> prefix = {};
  std::span<const ReplicaId> excluded = {};  // tried already, or not to be used by this one
};

// What a replica says of itself, as v1::Load has it.
struct LoadReport {
  bool serving = true;                     // false: it starts or drains
  std::uint32_t running = 0;               // sequences in the engine's batch
  std::uint32_t waiting = 0;               // sequences queued in the engine
  std::uint32_t max_running = 0;           // slots of the batch; 0: not known
  float kv_usage = 0;                      // 0..1
  std::uint32_t calls = 0;                 // under way there, of all gateways
  std::uint32_t calls_elsewhere = 0;       // of these, not ours
  std::uint32_t gateways = 0;              // that had calls there lately, this one included
  std::uint64_t waiting_tokens = 0;        // of the prompts of those that wait
  std::uint64_t tokens = 0;                // generated since its start
  std::uint64_t prompt_tokens = 0;         // computed since its start
  std::uint64_t steps = 0;                 // finished since its start
  std::uint64_t preemptions = 0;           // since its start
  std::uint32_t transfers = 0;             // of KV under way: work that makes no tokens
  std::vector<std::string> adapters = {};  // loaded, "name@version"
  std::uint32_t adapter_slots = 0;         // adapters that it can hold at once; 0: it takes none
  std::string config_hash = {};  // of two that are equal, one may continue the other's streams
  bool resumes = false;          // it continues those of others
};

// What went wrong with a call, through no fault of its client's, or with the replica's load stream.
enum class Failure : std::uint8_t {
  kUnreachable,   // no session came up
  kLost,          // the connection or the engine went with the call on it
  kLoadEnded,     // its load stream ended
  kSilent,        // it stands, and tells nothing any more
  kNoFirstEvent,  // no first event within the deadline
  kBadAnswer,     // 5xx that is not 503
};

// What the streams that run on a replica are told of it.
enum class Word : std::uint8_t {
  kNone,
  kStuck,     // it makes no progress, or is silent
  kHandOver,  // it is to go away: they are to go on at others
};

// Sums over the replicas of one deployment.
struct Counts {
  std::uint32_t ready = 0;      // by the routes and by their own word
  std::uint32_t with_room = 0;  // that a request without exclusions may be sent to now
  std::uint32_t starting = 0;
  std::uint32_t under_pressure = 0;  // ready, with more KV in use than kv_pressure
  bool operator==(const Counts&) const = default;
};

// A replica that is sent nothing although it is ready.
struct Doubt {
  ReplicaId replica;
  std::string_view reason;            // "unreachable", "failing", "slow" or "no_progress"
  std::chrono::milliseconds left{0};  // until it is tried again; 0: once it makes tokens again
};

// What is said of one that has work and makes no tokens.
inline constexpr std::string_view kNoProgress = "no_progress";

// Doubts that were opened since the start, by reason.
inline constexpr std::array kDoubtReasons = {std::string_view("unreachable"),
                                             std::string_view("failing"), std::string_view("slow"),
                                             kNoProgress};
using Ejections = std::array<std::uint64_t, kDoubtReasons.size()>;

}  // namespace penstock::routing
