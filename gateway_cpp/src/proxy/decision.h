// What was decided about one request, and with which inputs. A value that is filled by whoever
// decides, as it is decided; when the request has ended, the log line, the metrics and the bytes
// that explain and traces read are all made from it, so that they cannot disagree.
// v1::RequestRecord says what each part means.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/deployment_metrics.h"
#include "base/metrics.h"
#include "base/priority.h"
#include "base/slo.h"
#include "base/trace_context.h"
#include "dispatch/queue_turn.h"
#include "proxy/resumption.h"
#include "proxy/reused.h"
#include "routing/pick.h"

namespace penstock::proxy {

// How a request came to where it is.
enum class Way : uint8_t {
  kNamed,     // its client asked for it
  kCanary,    // it is in the share of a canary of the one that was asked
  kReturned,  // its canary could not answer: the one that was asked is to
  kRung,      // of the ladder of the one that was asked
};

// At one deployment.
struct StayRecord {
  std::string deployment;
  std::string adapter;   // "name@version"; empty: the base model
  std::string by;        // the alias or the canary by which it came here; empty: neither
  std::string left_for;  // why it could not be answered here; empty: it was
  std::string arm;       // what it left, where that is not the whole deployment
  Way way = Way::kNamed;
  bool passed_over = false;  // it was not even asked here
  bool has_turn = false;     // it was held against the queue
  uint64_t entered_us = 0;   // since it was read, as all of these
  uint32_t prompt_estimate = 0;
  uint32_t completion_estimate = 0;
  base::Priority priority = base::Priority::kNormal;
  dispatch::QueueTurn turn;
  std::chrono::nanoseconds waited{0};  // for places, before each attempt
  base::Slo slo;                       // of the deployment

  void clear();
  // As logs name what it left.
  std::string_view left() const { return arm.empty() ? deployment : arm; }
};

// One call to a replica.
struct AttemptRecord {
  std::string replica;
  std::string error;        // its code; empty: none
  std::string_view reason;  // static
  routing::Pick pick;
  uint64_t sent_us = 0;
  uint64_t first_us = 0;  // its first event at the client; 0: none
  uint64_t ended_us = 0;  // 0: it has not
  uint32_t queued_us = 0;
  uint32_t prefill_us = 0;
  uint32_t decode_us = 0;
  uint32_t cached_tokens = 0;

  void clear();
};

// What an engine did for a router program.
struct LegRecord {
  std::string_view call;  // static
  std::string replica;
  std::string failure;  // empty: it was done
  uint32_t tokens = 0;  // whose KV was moved
  std::chrono::microseconds took{0};
};

// Between two writes of a stream.
struct GapRecord {
  uint64_t at_us = 0;
  uint32_t ms = 0;
};

inline constexpr size_t kMostStays = 8;
inline constexpr size_t kMostAttempts = 12;
inline constexpr size_t kMostLegs = 8;
inline constexpr size_t kMostGaps = 8;
inline constexpr std::chrono::seconds kGap{1};  // shorter ones are none
inline constexpr size_t kMostModelBytes = 128;
inline constexpr size_t kMostKeptModelBytes = kMostModelBytes + 4;  // cut within a character, maybe
inline constexpr size_t kMostMessageBytes = 300;

// What is forgotten in one go. Views are of what is the request's own as long as it is under way.
struct RequestFacts {
  std::string_view request_id;
  std::string_view client_request_id;      // the caller's own; empty: none
  std::string_view trace_id;               // of the trace that it belongs to
  std::string_view path;                   // of the endpoint: its first name, static
  std::string_view operation = "unknown";  // likewise, as metrics and spans name it
  std::string_view tenant;                 // whose it is; empty: it came without a key
  std::string_view key_id;                 // that it came with; empty: none
  std::string_view client;                 // the address that it came from; empty: not to be told
  std::string_view degraded;               // why it is not what was asked for, static; empty: it is
  std::string_view program;  // what came of its router program, static; empty: none was asked
  std::string_view canary;   // the name of the one that its deployment has; empty: none
  base::TraceContext trace;
  uint64_t received_us = 0;              // since 1970; known once it is settled
  std::chrono::nanoseconds duration{0};  // likewise
  base::PhaseTimes phases;
  unsigned status = 499;  // what the client saw; 499: it left before
  base::Outcome outcome = base::Outcome::kCancelled;
  bool of_candidate = false;      // its arm, where it is of a canary
  bool streamed = false;          // its client asked for events
  bool suspect = false;           // engines had died with it aboard: it ran apart
  bool quarantined = false;       // it was refused for that
  unsigned attempts_made = 0;     // calls to replicas, those that were called back, too
  uint32_t trimmed_messages = 0;  // left out of the prompt
  uint32_t trimmed_tokens = 0;
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t cached_tokens = 0;
  uint64_t cost_nanousd = 0;
  std::chrono::nanoseconds queue_wait{0};   // for places, before each attempt
  std::chrono::nanoseconds engine_ttft{0};  // as the engine says; 0: it does not
  std::chrono::nanoseconds generation{0};   // of a whole stream: first byte to last; 0: none
  // With each event of a stream:
  std::optional<std::chrono::nanoseconds> ttft;  // request read to first answer byte handed over
  std::chrono::nanoseconds silence{0};  // of a stream: the longest between two writes, coarse
  uint64_t events = 0;                  // SSE events handed to the client
  uint64_t bytes = 0;                   // answer bytes handed to the client
};

struct RequestRecord : RequestFacts {
  std::string model;           // as the request named it; empty: it named none
  std::string prompt_version;  // of its metadata; empty: none
  std::string model_version;   // as the replica told it; empty: it did not
  std::string replica;         // the last one that it was sent to, where it is
  std::string error_code;      // empty: none
  std::string drop_reason;     // as the client was told it; empty: admission let it in
  std::string message;         // what the client was told; empty: no error
  std::string rung;            // that the answer is owed to: "trim", "fallback:mini-2"
  std::string asked;           // the deployment that was asked for, where it is degraded
  Reused<StayRecord> stays;
  Reused<AttemptRecord> attempts;
  std::vector<LegRecord> legs;
  std::vector<GapRecord> gaps;
  std::vector<std::string> shadows;        // rules by which it was repeated
  std::unique_ptr<Resumption> resumption;  // null: its answer never broke
  routing::Pick next_pick;                 // of the place that the next attempt has

  // Where it is, or was; empty: never resolved.
  const std::string& deployment() const;
  const std::string& adapter() const;  // "name@version"; empty: base model
  // As admission estimated it, where it is.
  std::chrono::milliseconds estimated_wait() const;
  // What is to hold there.
  base::Slo slo() const;
  bool is_trimmed() const { return trimmed_messages > 0 || trimmed_tokens > 0; }

  // It goes there; one that it was to go to and did not reach gives way.
  StayRecord& stay(Way way, std::string_view at, std::string_view with_adapter, uint64_t now_us);
  // It leaves where it is, which could not answer it. `arm`: what could not.
  void leave(std::string_view arm, std::string_view why);
  // Nor is it sent there.
  void pass_over(std::string_view other, std::string_view why, uint64_t now_us);
  // None of its rungs helped: it ends at that deployment, as it had left it.
  void return_to(std::string before, std::string with_adapter, uint64_t now_us);
  // Null: it is nowhere.
  StayRecord* here();
  const StayRecord* here() const;

  // It is sent to a replica, by the last pick.
  void send(std::string_view to, std::string_view reason, uint64_t now_us);
  // The call that is under way is over; nothing, where none is.
  void end_attempt(std::string_view error, uint64_t now_us);
  void note_gap(std::chrono::nanoseconds gap, uint64_t now_us);
  void forget_degraded();  // nobody has seen an answer of another

  void clear();

 private:
  StayRecord& add_stay();
};

// "next=engine_error, mini:pirate@2=queue_full": who could not answer it, and why.
std::string left_text(const RequestRecord& record);
// "messages=3, tokens=812"; empty: nothing was left out.
std::string trimmed_text(const RequestRecord& record);
// "prep_recv@r2=16/1ms, remote_send@r1=transfer/55ms"
std::string legs_text(const RequestRecord& record);

// The records of a thread's requests, a few of which wait for the next with the memory that they
// have. That thread only.
class RecordPool {
 public:
  std::unique_ptr<RequestRecord> take();
  void give(std::unique_ptr<RequestRecord> record);

 private:
  static constexpr size_t kKept = 256;
  std::vector<std::unique_ptr<RequestRecord>> kept_;
};

}  // namespace penstock::proxy
