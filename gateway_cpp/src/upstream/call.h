// One call on a replica as its request's coroutine sees it: what has come so far, credit to give
// back, cancel. One I/O thread only; owned by the request. Whatever carries the call (a
// ReplicaSession, or a fake in tests) delivers events and raises the request's signal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "dispatch/turn.h"
#include "penstock/v1/inference.pb.h"
#include "runtime/payload.h"
#include "upstream/call_event.h"

namespace penstock::runtime {
class Signal;
}  // namespace penstock::runtime

namespace penstock::upstream {

class Call;

// What a call asks of what carries it.
class CallLink {
 public:
  virtual ~CallLink() = default;
  // More body bytes that the client can take.
  virtual void grant(uint64_t call_id, uint64_t bytes) = 0;
  // The call is over for its owner: nothing more is delivered, and if it has not ended, the replica
  // is told to stop.
  virtual void release(Call& call) = 0;
};

// Why a call ended without an answer.
struct CallFailure {
  enum class Source : uint8_t {
    kReplica,      // the replica said so
    kUnreachable,  // the call was never sent, whatever became of the session
    kLost,         // the connection broke after the call was sent
    kEnded,        // the replica ended the session after the call was sent: its process lives
  };
  Source source = Source::kReplica;
  v1::ErrorDetail error;
  bool stopped = false;   // by a replica that nobody had told to
  bool repeated = false;  // its client has more than the answer, whatever its last event says
};

// Who pays for a call: told what it cost, once for each call.
class Payer {
 public:
  Payer() = default;
  Payer(const Payer&) = delete;
  Payer& operator=(const Payer&) = delete;
  virtual ~Payer() = default;
  virtual void cost(const Usage& usage) = 0;
};

// What is held for a call until the replica is done with it, however long its owner stays: one that
// was cancelled is over when the replica says so.
struct Held {
  dispatch::Place place;
  std::shared_ptr<Payer> payer;  // null: nobody
  Usage seen;                    // what has come of the answer so far
  Usage paid = {};               // of this, for calls before that it goes on with

  // The replica is done with the call, and says what it cost; one that failed or was cancelled says
  // nothing of how long calls take.
  enum class Ended : uint8_t { kWhole, kCutShort };
  void settle(const Usage& usage, Ended ended);
  // What its payer has not been told of yet.
  Usage unpaid() const;
  // The same for its payer alone, who hears no more of it.
  void pay(const Usage& usage);
  // The same by the last event of a call that nobody waits for; false: it is not the last.
  bool settle_by(const CallEvent& event);
  // The replica tells nothing any more: what was seen is what it cost.
  enum class Silence : uint8_t { kLost, kUnanswered };
  void drop(Silence silence);
};

// Takes a call's chunks on as they come, from where they lie.
class ChunkReader {
 public:
  // False: the chunk is kept, and the call's owner woken. Called while what a replica sent is
  // looked through: it may give credit, and opens, cancels, wakes nothing.
  virtual bool read(Call& call, const ChunkView& chunk) noexcept = 0;

 protected:
  ~ChunkReader() = default;
};

class Call {
 public:
  // credit_bytes: what the replica may send before the first grant; 0: unlimited.
  Call(std::shared_ptr<CallLink> link, uint64_t id, uint64_t credit_bytes, runtime::Signal& news);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  uint64_t id() const { return id_; }

  // ---- for the request

  bool has_head() const { return has_head_; }
  const Head& head() const { return head_; }
  bool has_bytes() const { return !pending_.empty(); }
  // While one of these lives and nothing is pending, chunks are offered to the reader first. The
  // call outlives it.
  class Reading {
   public:
    Reading(Call& call, ChunkReader& reader) : call_(call) { call_.reader_ = &reader; }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { call_.reader_ = nullptr; }

   private:
    Call& call_;
  };
  // SSE events among the pending bytes.
  uint32_t pending_events() const { return pending_events_; }
  // The tokens that the pending bytes are made of, for a request that asked for them: what comes
  // unasked is dropped. Where there are more than kMostGroupBytes, not all that came are here.
  static constexpr size_t kMostGroupBytes = 1UL << 20U;
  TokenGroupsView pending_groups() const { return {pending_groups_}; }
  void keep_groups() { keeps_groups_ = true; }
  // Swaps the pending bytes into `payload`, which must be empty; their tokens are forgotten.
  void take(runtime::Payload& payload);
  // The client has taken so many of the bytes: credit goes back in batches of half the window.
  void wrote(uint64_t bytes);

  bool ended() const { return end_ != End::kNot; }
  bool finished() const { return end_ == End::kFinished; }
  bool failed() const { return end_ == End::kFailed; }
  // The replica is done with it too: one that broke its word has to be told to stop.
  bool is_over() const { return over_; }
  const Finished& outcome() const { return outcome_; }      // when finished
  const CallFailure& failure() const { return *failure_; }  // when failed

  // Idempotent. The replica stops; nothing more is delivered.
  void cancel();
  // What was seen of it is what it costs, whatever its replica does beyond that.
  void pay_seen() { held_.pay(held_.seen); }

  // Held from here to the call's end at the replica, however long its client takes to read.
  void hold(Held held);
  // What it has cost so far, as the replica has said it; once it has ended, all of it.
  const Usage& seen() const { return held_.seen; }
  // Of this, what its payer is told of later.
  Usage unpaid() const { return held_.unpaid(); }
  // For what carries on with a call that was cancelled.
  Held take_held() { return std::move(held_); }

  // ---- for what carries the call

  // Takes what it wants out of the event. True: its owner has to be woken.
  bool deliver(const CallEvent& event);
  bool fail(CallFailure failure);  // likewise
  runtime::Signal& news() { return news_; }
  // True while the carrier has this call on its list of calls to wake.
  bool listed = false;

 private:
  static constexpr size_t kKeptGroupBytes = 4UL << 10U;  // beyond which a burst's memory goes

  enum class End : uint8_t { kNot, kFinished, kFailed };

  bool was_read(const CallEvent& event);
  void take(const CallEvent& event);
  void take_rest(CallEvent::Rest& rest);
  void begin(Head head);
  void take_chunk(const ChunkView& chunk);
  bool adds_up(const Finished& outcome) const;
  void finish(Finished outcome);
  void end_failed(v1::Failed& failed);
  void end_unasked(const v1::Cancelled& cancelled);
  void end(Held::Ended ended);
  void give_up(std::string_view fault);

  const uint64_t id_;
  runtime::Signal& news_;
  Held held_;
  // What each event looks at lies together, behind what was seen of the call.
  ChunkReader* reader_ = nullptr;
  const uint64_t credit_bytes_;
  uint64_t owed_bytes_ = 0;         // written to the client, not yet granted again
  std::shared_ptr<CallLink> link_;  // null once released
  runtime::Payload pending_;
  uint32_t pending_events_ = 0;
  std::string pending_groups_;
  bool has_head_ = false;
  bool keeps_groups_ = false;
  bool over_ = false;
  End end_ = End::kNot;
  Head head_;
  Finished outcome_;
  std::optional<CallFailure> failure_;
};

}  // namespace penstock::upstream
