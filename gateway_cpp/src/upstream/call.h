// One call on a replica as its request's coroutine sees it: what has come so far, credit to give
// back, cancel. One I/O thread only; owned by the request. Whatever carries the call (a Session, or
// a fake in tests) delivers events and raises the request's signal.
#pragma once

#include <cstdint>
#include <memory>

#include "penstock/v1/inference.pb.h"
#include "routing/replica_tracker.h"
#include "runtime/payload.h"

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
  const v1::Head& head() const { return head_; }
  bool has_bytes() const { return !pending_.empty(); }
  // SSE events among the pending bytes.
  uint32_t pending_events() const { return pending_events_; }
  // Swaps the pending bytes into `payload`, which must be empty.
  void take(runtime::Payload& payload);
  // The client has taken so many of the bytes: credit goes back in batches of half the window.
  void wrote(uint64_t bytes);

  bool ended() const { return end_ != End::kNot; }
  bool finished() const { return end_ == End::kFinished; }
  bool failed() const { return end_ == End::kFailed; }
  const v1::Finished& outcome() const { return outcome_; }  // when finished
  const CallFailure& failure() const { return failure_; }   // when failed

  // Idempotent. The replica stops; nothing more is delivered.
  void cancel();

  // The call counts on its replica from here to its end, however long its client takes to read.
  void occupy(routing::InFlight slot);

  // ---- for what carries the call

  // Takes what it wants out of the event, by swapping.
  void deliver(v1::CallEvent& event);
  void fail(CallFailure failure);
  runtime::Signal& news() { return news_; }
  // True while the carrier has this call on its list of calls to wake.
  bool listed = false;

 private:
  enum class End : uint8_t { kNot, kFinished, kFailed };

  std::shared_ptr<CallLink> link_;  // null once released
  routing::InFlight slot_;
  const uint64_t id_;
  const uint64_t credit_bytes_;
  runtime::Signal& news_;
  runtime::Payload pending_;
  uint64_t owed_bytes_ = 0;  // written to the client, not yet granted again
  uint32_t pending_events_ = 0;
  bool has_head_ = false;
  End end_ = End::kNot;
  v1::Head head_;
  v1::Finished outcome_;
  CallFailure failure_;
};

}  // namespace penstock::upstream
