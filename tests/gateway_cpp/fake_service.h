// What the fakes of head, comparer and replica are: a gRPC service in this process, real gRPC, on a
// port that it can leave and come back to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace penstock::test {

template <class Service>
class FakeService : public Service {
 public:
  const std::string& address() const { return address_; }

  // Ends all calls and frees the port. A destructor's first act: calls look at what it destroys.
  void kill() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    // gRPC waits for calls where the thread sanitizer cannot see it: their lock it sees.
    const std::lock_guard lock(mutex_);
  }
  void start_again() { start(address_); }

  // Under the service's lock; false after 20 s.
  template <class Condition>
  bool wait_for(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

 protected:
  // A constructor's last act.
  void start(const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  // What the caller shows; empty: nothing.
  static std::string authorization_of(const grpc::ServerContext& context) {
    const auto& metadata = context.client_metadata();
    const auto token = metadata.find("authorization");
    if (token == metadata.end()) return {};
    return {token->second.data(), token->second.size()};
  }

  mutable std::mutex mutex_;  // guards what calls and the test look at
  std::condition_variable changed_;

 private:
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::test
