// A comparer in this process, which counts or does not as the test says.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fake_service.h"
#include "penstock/v1/shadow.grpc.pb.h"

namespace penstock::control_plane {

class FakeComparer final : public test::FakeService<v1::Shadow::Service> {
 public:
  explicit FakeComparer(bool counts = true) : counts_(counts) { start(); }
  ~FakeComparer() override { kill(); }

  // From now on it counts.
  void start_again() {
    {
      const std::lock_guard lock(mutex_);
      counts_ = true;
    }
    FakeService::start_again();
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
  grpc::Status Record(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ShadowRecorded, v1::ShadowBatch>* stream) override {
    v1::ShadowBatch batch;
    while (stream->Read(&batch)) {
      const std::lock_guard lock(mutex_);
      if (batch.pairs_size() > 0 && batch.pairs(0).request_id() == refuses) {
        return {grpc::StatusCode::INTERNAL, "it cannot be read"};
      }
      authorization = authorization_of(*context);
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

  bool counts_;
};

}  // namespace penstock::control_plane
