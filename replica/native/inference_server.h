// The gRPC server of `Inference`, on gRPC's own threads. No thread of it ever needs Python.
//
// Constructing binds and serves at once, in state starting: calls are refused, load and health tell
// why. `stop` is the way down; the destructor stops, too, and must not run under the GIL.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "call.h"
#include "control_desk.h"
#include "inbox.h"
#include "load_board.h"
#include "penstock/v1/inference.grpc.pb.h"
#include "switchboard.h"

namespace penstock::replica {

struct ServerOptions {
  std::string listen;           // "host:port", port 0 for any free one
  std::string callers_token{};  // that every rpc has to carry; empty: none is asked for
  // A client that says nothing for so long is asked for a sign of life...
  std::chrono::milliseconds keepalive{20'000};
  // ...and is gone, with all its calls, if there is none within this.
  std::chrono::milliseconds keepalive_timeout{10'000};
};

class InferenceServer {
 public:
  // Throws std::runtime_error if it cannot listen.
  InferenceServer(const ServerOptions& options, const std::shared_ptr<Inbox>& inbox);
  ~InferenceServer();
  InferenceServer(const InferenceServer&) = delete;
  InferenceServer& operator=(const InferenceServer&) = delete;

  // "host:port" as bound.
  const std::string& address() const { return address_; }
  Switchboard& switchboard() { return switchboard_; }
  ControlDesk& control_desk() { return control_desk_; }
  // Calls go to this engine; those about KV that moves still to Python. Only before it is ready.
  void answer_with(std::shared_ptr<CallHandler> engine);

  // Publishes state and load; the state decides whether calls are taken.
  void set_load(const v1::Load& load);
  // The load of this moment, as tools are told of it.
  v1::Load load();
  // Stops accepting, lets what is being written out go for `grace`, then ends every stream.
  void stop(std::chrono::milliseconds grace);

 private:
  class Service;

  const std::shared_ptr<CallHandler> python_;
  Switchboard switchboard_;
  LoadBoard load_board_;
  ControlDesk control_desk_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Service> microserving_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace penstock::replica
