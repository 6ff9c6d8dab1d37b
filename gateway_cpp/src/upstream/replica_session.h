// One Inference.Session between one I/O thread and one replica, carrying all their calls: frames of
// starts, cancels and credit go out, frames with the news of many calls come in. Its end is the
// first sign of the replica's death and fails every call on it.
//
// A ReplicaSession lives on its I/O thread, socket included, and is owned by that thread's
// ReplicaPool (calls keep it alive).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "penstock/v1/inference.pb.h"
#include "runtime/send_batch.h"
#include "upstream/call.h"
#include "upstream/large_body.h"
#include "upstream/replica_connection.h"
#include "upstream/session_calls.h"
#include "upstream/start_frame.h"

namespace penstock::upstream {

struct SessionSettings {
  uint64_t credit_bytes = 0;  // window of each call; 0: unlimited
  std::string token;          // what the replica asks for; empty: none is sent
  std::string gateway_id;     // the same for all sessions of this gateway
};

// Hears of a replica's load and of the session's end, which is the first sign of its death.
class LoadListener {
 public:
  virtual ~LoadListener() = default;
  virtual void on_load(const v1::Load& load) = 0;
  virtual void on_end() = 0;
};

class ReplicaSession final : public CallLink,
                             private ReplicaConnection::Owner,
                             public std::enable_shared_from_this<ReplicaSession> {
 public:
  // `sends`: of the thread's clients. Why a session ended goes into `log`, once. With a listener it
  // asks for the replica's load.
  static std::shared_ptr<ReplicaSession> start(asio::io_context& io, runtime::SendBatch& sends,
                                               const std::string& address, std::string replica_id,
                                               const SessionSettings& settings, base::Log& log,
                                               std::shared_ptr<LoadListener> listener = nullptr);
  // Cancels what still runs.
  ~ReplicaSession() override;
  ReplicaSession(const ReplicaSession&) = delete;
  ReplicaSession& operator=(const ReplicaSession&) = delete;

  // `large`: the request's body, where it is not in `request`.
  std::unique_ptr<Call> open(const CallRequest& request, runtime::Signal& news,
                             SharedBody large = nullptr);

  bool ended() const { return ended_; }
  // It takes no further calls: it has ended, or the replica goes away and finishes what it has.
  bool closed_to_calls() const { return ended_ || connection_->going_away(); }
  // The replica has spoken on this session.
  bool heard() const { return heard_; }
  // Calls that the replica is not done with.
  size_t running() const { return calls_.size() + calls_.cancelled(); }
  // About once a second.
  void sweep() { calls_.give_up_unanswered(kPatience); }

  void grant(uint64_t call_id, uint64_t bytes) override;
  void release(Call& call) override;

 private:
  static constexpr unsigned kPatience = 10;  // sweeps that a cancelled call is waited for

  // Calls up to `last_call` lie within the first `end` bytes of what goes over the connection.
  struct Flushed {
    uint64_t last_call;
    uint64_t end;
  };

  ReplicaSession(asio::io_context& io, runtime::SendBatch& sends, std::string replica_id,
                 const SessionSettings& settings, base::Log& log,
                 std::shared_ptr<LoadListener> listener);
  bool on_message(std::string_view message) override;
  void on_turn() override;
  void on_end(std::string_view why) override;
  void greet(const std::string& gateway_id);
  void fail_all();
  void note_sent();
  void log_end(std::string_view why) const;
  CallFailure failure_of(uint64_t call_id) const;
  void wake_listed();
  void flush_later();
  void flush();
  void send_large(const StartView& start, SharedBody large);
  void let_go_of_body(uint64_t call_id);

  asio::io_context& io_;
  runtime::SendBatch& sends_;
  const std::string replica_id_;
  const uint64_t credit_bytes_;
  base::Log& log_;
  const std::shared_ptr<LoadListener> listener_;  // null: this session tells of no load
  std::shared_ptr<ReplicaConnection> connection_;
  SessionCalls calls_;
  // The next frame: what there is to say but for the calls that begin, and those, as they go.
  v1::ClientFrame outgoing_;
  std::string starts_;
  std::deque<Flushed> flushed_;  // frames with starts that the socket may not have taken yet
  uint64_t sent_through_ = 0;    // the last call that was sent
  uint64_t last_id_ = 0;
  std::optional<runtime::SendBatch::Open> turn_;  // what is read in this turn
  bool flush_posted_ = false;
  bool heard_ = false;
  bool ended_ = false;
};

}  // namespace penstock::upstream
