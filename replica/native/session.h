// The server's side of one `Inference.Session`: frames in, frames out.
//
// Two objects: `SessionOutlet` is what calls hold on to, and lives as long as any of them;
// `Session`, the gRPC reactor, belongs to gRPC and deletes itself in OnDone. The outlet reaches the
// reactor only while a write or a read may be started, which ends with the call of Finish.
//
// Frames are read as bytes and parsed here: gRPC tells of a message that it cannot parse exactly as
// of a client that sends no more, and the calls of such a session would hang.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "inbox.h"
#include "load_board.h"
#include "outbox.h"
#include "penstock/v1/inference.pb.h"
#include "switchboard.h"

namespace penstock::replica {

class Session;

class SessionOutlet final : public Outlet, public LoadWatcher {
 public:
  SessionOutlet(Session* session, Switchboard* switchboard, LoadBoard* load_board)
      : session_(session), switchboard_(switchboard), load_board_(load_board) {}

  bool ready(const CallPtr& call) override { return outbox_.ready(call); }
  // Writes the next frame, unless one is on its way; ends the stream when there will be no more.
  void flush() override;

  // Frames of events take a changed load along from now on.
  void watch_load() { watches_load_ = true; }
  // It goes with the next frame.
  void tell() override;

  Outbox& outbox() { return outbox_; }
  // Whose the session is, before its first call and watch.
  void belongs_to(std::shared_ptr<Gateway> gateway) { gateway_ = std::move(gateway); }
  const std::shared_ptr<Gateway>& gateway() const { return gateway_; }
  void written(bool ok);
  // The client sends no more: ends when its calls are done.
  void half_closed();
  // The client is gone, or is to go: drops all calls, and ends with this status.
  void gone(const grpc::Status& status = grpc::Status::CANCELLED);
  // The inbox has room again: reads on, unless the session is over.
  void resume_reading();

 private:
  enum class Next { kNothing, kWrite, kFinish };
  Next next_step(Outbox::Filled* filled);
  bool fill(Outbox::Filled* filled);

  Session* const session_;
  Switchboard* const switchboard_;
  LoadBoard* const load_board_;
  std::shared_ptr<Gateway> gateway_;
  std::atomic<bool> watches_load_{false};
  Outbox outbox_;
  std::mutex mutex_;
  bool to_tell_ = false;  // the load
  v1::ServerFrame frame_;
  grpc::ByteBuffer outgoing_;
  grpc::Status ending_;  // fixed once `finished_` is set
  bool writing_ = false;
  bool resuming_ = false;
  bool half_closed_ = false;
  bool gone_ = false;
  bool finished_ = false;
};

class Session final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `peer` is named in the log when the session has to be ended.
  Session(Switchboard* switchboard, LoadBoard* load_board, std::shared_ptr<Inbox> inbox,
          std::string peer);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  friend class SessionOutlet;
  void greet(const v1::ClientFrame& frame);
  void carry_out(v1::ClientFrame* frame);
  void start_calls(v1::ClientFrame* frame);
  void end_unreadable(size_t bytes);
  void start_read();

  Switchboard* const switchboard_;
  LoadBoard* const load_board_;
  const std::shared_ptr<Inbox> inbox_;
  const std::string peer_;
  const std::shared_ptr<SessionOutlet> outlet_;
  grpc::ByteBuffer incoming_;
  v1::ClientFrame frame_;
};

}  // namespace penstock::replica
