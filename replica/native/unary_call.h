// The server's side of a unary rpc that is answered as a call: its path is the rpc's full name, its
// body the request, serialised; the answer's body is the reply.
//
// Two objects for the same reason as in session.h: the outlet lives as long as its call, the
// reactor as long as gRPC wants.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <string>

#include "call.h"
#include "switchboard.h"

namespace penstock::replica {

class UnaryOutlet final : public Outlet {
 public:
  UnaryOutlet(grpc::ServerUnaryReactor* reactor, grpc::ByteBuffer* reply, Switchboard* switchboard)
      : reactor_(reactor), reply_(reply), switchboard_(switchboard) {}

  bool ready(const CallPtr& call) override;
  void flush() override;
  // The client is gone.
  void gone();

 private:
  bool take_all(const CallPtr& call, bool* room);

  grpc::ServerUnaryReactor* const reactor_;
  grpc::ByteBuffer* const reply_;
  Switchboard* const switchboard_;
  std::mutex mutex_;
  CallPtr ready_;  // the call, while it has something to say
  std::string body_;
  grpc::Status status_;
  bool finished_ = false;
};

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(Switchboard* switchboard, const std::string& path, const grpc::ByteBuffer& request,
            grpc::ByteBuffer* reply);

  void OnCancel() override;
  void OnDone() override;

 private:
  Switchboard* const switchboard_;
  const std::shared_ptr<UnaryOutlet> outlet_;
  const CallPtr call_;
};

// How a call's failure is told as the end of an rpc: "code: message".
grpc::Status status_of(const v1::ErrorDetail& error);

}  // namespace penstock::replica
