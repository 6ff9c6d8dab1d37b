// Streams that are ended before they begin.
#pragma once

#include <grpcpp/grpcpp.h>

namespace penstock::replica {

template <class Reactor>
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

inline grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext* context,
                                        const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace penstock::replica
