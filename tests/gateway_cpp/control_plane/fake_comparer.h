// A comparer in this process: real gRPC, which counts or does not as the test says.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "penstock/v1/shadow.grpc.pb.h"

namespace penstock::control_plane {

class FakeComparer final : public v1::Shadow::Service {
 public:
  explicit FakeComparer(bool counts = true) : counts_(counts) { start("127.0.0.1:0"); }
  ~FakeComparer() override { kill(); }

  const std::string& address() const { return address_; }

  // Ends all streams and frees the port.
  void kill() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  // From now on it counts.
  void start_again() {
    {
      const std::lock_guard lock(mutex_);
      counts_ = true;
    }
    start(address_);
  }

  template <class Condition>
  bool wait_for(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

  std::vector<std::string> questions;  // ids, of which each batch with pairs brings all; likewise
  std::string refuses;  // the request whose pair it cannot take; set before it is served

  // Read them inside wait_for, or after the client has stopped.
  std::vector<v1::ShadowBatch> batches;
  std::string authorization;  // of the last stream
  size_t pairs() const {
    size_t pairs = 0;
    for (const auto& batch : batches) pairs += static_cast<size_t>(batch.pairs_size());
    return pairs;
  }
  // By the id of the question.
  std::map<std::string, v1::ShadowReply> replies() const {
    std::map<std::string, v1::ShadowReply> found;
    for (const auto& batch : batches) {
      for (const auto& reply : batch.replies()) found[reply.id()] = reply;
    }
    return found;
  }

 private:
  void start(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  grpc::Status Record(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ShadowRecorded, v1::ShadowBatch>* stream) override {
    const auto& metadata = context->client_metadata();
    const auto token = metadata.find("authorization");
    v1::ShadowBatch batch;
    while (stream->Read(&batch)) {
      const std::lock_guard lock(mutex_);
      if (batch.pairs_size() > 0 && batch.pairs(0).request_id() == refuses) {
        return {grpc::StatusCode::INTERNAL, "it cannot be read"};
      }
      if (token != metadata.end()) authorization.assign(token->second.data(), token->second.size());
      batches.push_back(batch);
      changed_.notify_all();
      v1::ShadowRecorded recorded;
      recorded.set_number(batch.number());
      if (batch.number() == 0) continue;
      if (counts_) stream->Write(recorded);
      if (batch.pairs_size() > 0 && !questions.empty()) stream->Write(asking());
    }
    return grpc::Status::OK;
  }

  v1::ShadowRecorded asking() const {
    v1::ShadowRecorded message;
    for (const auto& id : questions) message.add_questions()->set_id(id);
    return message;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool counts_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::control_plane
