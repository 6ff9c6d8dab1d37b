// A replica in this process, with frames that the test reads and writes.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "fake_service.h"
#include "penstock/v1/inference.grpc.pb.h"

namespace penstock::upstream {

class FakeReplica final : public test::FakeService<v1::Inference::Service> {
 public:
  FakeReplica() { start(); }
  ~FakeReplica() override { kill(); }

  // Writes on the session that came last.
  bool send(const v1::ServerFrame& frame) {
    grpc::ServerReaderWriter<v1::ServerFrame, v1::ClientFrame>* stream = nullptr;
    {
      const std::lock_guard lock(mutex_);
      stream = stream_;
    }
    return stream != nullptr && stream->Write(frame);
  }

  // For conditions of EventLoop::run_until.
  std::vector<v1::ClientFrame> frames() const {
    const std::lock_guard lock(mutex_);
    return frames_;
  }
  size_t sessions() const {
    const std::lock_guard lock(mutex_);
    return sessions_;
  }
  std::vector<v1::Start> starts() const {
    std::vector<v1::Start> starts;
    for (const auto& frame : frames()) {
      starts.insert(starts.end(), frame.starts().begin(), frame.starts().end());
    }
    return starts;
  }
  std::vector<uint64_t> cancels() const {
    std::vector<uint64_t> cancels;
    for (const auto& frame : frames()) {
      cancels.insert(cancels.end(), frame.cancels().begin(), frame.cancels().end());
    }
    return cancels;
  }
  std::vector<v1::Credit> credits() const {
    std::vector<v1::Credit> credits;
    for (const auto& frame : frames()) {
      credits.insert(credits.end(), frame.credits().begin(), frame.credits().end());
    }
    return credits;
  }

 private:
  grpc::Status Session(
      grpc::ServerContext* /*context*/,
      grpc::ServerReaderWriter<v1::ServerFrame, v1::ClientFrame>* stream) override {
    {
      const std::lock_guard lock(mutex_);
      stream_ = stream;
      ++sessions_;
    }
    v1::ClientFrame frame;
    while (stream->Read(&frame)) {
      const std::lock_guard lock(mutex_);
      frames_.push_back(frame);
    }
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
    return grpc::Status::OK;
  }

  grpc::ServerReaderWriter<v1::ServerFrame, v1::ClientFrame>* stream_ = nullptr;
  size_t sessions_ = 0;
  std::vector<v1::ClientFrame> frames_;
};

inline v1::CallEvent& add_chunk(v1::ServerFrame& frame, uint64_t call_id, const std::string& body) {
  v1::CallEvent& event = *frame.add_events();
  event.set_call_id(call_id);
  event.mutable_chunk()->set_body(body);
  event.mutable_chunk()->set_events(1);
  return event;
}

}  // namespace penstock::upstream
