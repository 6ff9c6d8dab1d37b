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

class InferenceServer {
 public:
  // `listen`: "host:port", port 0 for any free one. Throws std::runtime_error if it cannot be
  // bound.
  InferenceServer(const std::string& listen, const std::shared_ptr<Inbox>& inbox);
  ~InferenceServer();
  InferenceServer(const InferenceServer&) = delete;
  InferenceServer& operator=(const InferenceServer&) = delete;

  // "host:port" as bound.
  const std::string& address() const { return address_; }
  Switchboard& switchboard() { return switchboard_; }
  ControlDesk& control_desk() { return control_desk_; }

  // Publishes state and load; the state decides whether calls are taken.
  void set_load(const v1::Load& load);
  // Stops accepting, lets what is being written out go for `grace`, then ends every stream.
  void stop(std::chrono::milliseconds grace);

 private:
  class Service;

  LoadBoard load_board_;
  Switchboard switchboard_;
  ControlDesk control_desk_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace penstock::replica
