// The server's side of `Inference.Call`: one call, its events as they become ready, no credit.
//
// Two objects for the same reason as in session.h: the outlet lives as long as its call, the
// reactor as long as gRPC wants.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>

#include "call.h"
#include "penstock/v1/inference.pb.h"
#include "switchboard.h"

namespace penstock::replica {

class CallStream;

class CallStreamOutlet final : public Outlet {
 public:
  CallStreamOutlet(CallStream* stream, Switchboard* switchboard)
      : stream_(stream), switchboard_(switchboard) {}

  bool ready(const CallPtr& call) override;
  void flush() override;
  void written(bool ok);
  // The client is gone.
  void gone();

 private:
  enum class Next { kNothing, kWrite, kFinish, kFinishCancelled };
  Next next_step(TokenQueue::Taken* taken, CallPtr* call);

  CallStream* const stream_;
  Switchboard* const switchboard_;
  std::mutex mutex_;
  CallPtr ready_;  // the call, while it has something to send
  v1::CallEvent event_;
  bool writing_ = false;
  bool ended_ = false;
  bool gone_ = false;
  bool finished_ = false;
};

class CallStream final : public grpc::ServerWriteReactor<v1::CallEvent> {
 public:
  CallStream(Switchboard* switchboard, const v1::CallRequest& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  friend class CallStreamOutlet;

  Switchboard* const switchboard_;
  const std::shared_ptr<CallStreamOutlet> outlet_;
  const CallPtr call_;
};

}  // namespace penstock::replica
