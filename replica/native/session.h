// The server's side of one `Inference.Session`: frames in, frames out.
//
// Two objects: `SessionOutlet` is what calls hold on to, and lives as long as any of them;
// `Session`, the gRPC reactor, belongs to gRPC and deletes itself in OnDone. The outlet reaches the
// reactor only while a write may be started, which ends, under its lock, with the call of Finish.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <vector>

#include "call.h"
#include "outbox.h"
#include "penstock/v1/inference.pb.h"
#include "switchboard.h"

namespace penstock::replica {

class Session;

class SessionOutlet final : public Outlet {
 public:
  SessionOutlet(Session* session, Switchboard* switchboard)
      : session_(session), switchboard_(switchboard) {}

  bool ready(const CallPtr& call) override { return outbox_.ready(call); }
  // Writes the next frame, unless one is on its way; ends the stream when there will be no more.
  void flush() override;

  Outbox& outbox() { return outbox_; }
  void written(bool ok);
  // The client sends no more: ends when its calls are done.
  void half_closed();
  // The client is gone: drops all calls.
  void gone();

 private:
  enum class Next { kNothing, kWrite, kFinish, kFinishCancelled };
  Next next_step(Outbox::Filled* filled);
  void reset_frame();

  Session* const session_;
  Switchboard* const switchboard_;
  Outbox outbox_;
  std::mutex mutex_;
  v1::ServerFrame frame_;
  size_t largest_body_ = 0;
  bool writing_ = false;
  bool half_closed_ = false;
  bool gone_ = false;
  bool finished_ = false;
};

class Session final : public grpc::ServerBidiReactor<v1::ClientFrame, v1::ServerFrame> {
 public:
  explicit Session(Switchboard* switchboard);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  friend class SessionOutlet;
  void start_calls(v1::ClientFrame* frame);

  Switchboard* const switchboard_;
  const std::shared_ptr<SessionOutlet> outlet_;
  v1::ClientFrame incoming_;
};

}  // namespace penstock::replica
