// A server over real gRPC connections with the simulated engine behind it, and a client of it.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "inference_server.h"
#include "simulated/simulated_engine.h"
#include "support.h"

namespace penstock::replica::test {

using simulated::Settings;
using simulated::SimulatedEngine;

inline Settings paced(double tokens_per_second) {
  Settings settings;
  settings.behaviour.tokens_per_second = tokens_per_second;
  return settings;
}

// One session of a client, used from one thread.
class Client {
 public:
  explicit Client(v1::Inference::Stub* stub, const std::string& token = "") {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub->Session(&context_);
  }
  ~Client() {
    if (!stream_) return;
    context_.TryCancel();
    stream_->Finish();
  }
  void start(uint64_t id, const v1::CallRequest& request, uint64_t credit = 0) {
    v1::Start* start = next_.add_starts();
    start->set_call_id(id);
    start->set_initial_credit_bytes(credit);
    *start->mutable_request() = request;
  }
  void hello(const std::string& gateway_id, bool watch_load) {
    next_.mutable_hello()->set_gateway_id(gateway_id);
    next_.mutable_hello()->set_watch_load(watch_load);
  }
  void cancel(uint64_t id) { next_.add_cancels(id); }
  void grant(uint64_t id, uint64_t bytes) {
    v1::Credit* credit = next_.add_credits();
    credit->set_call_id(id);
    credit->set_bytes(bytes);
  }
  void send() {
    ASSERT_TRUE(stream_->Write(next_));
    next_.Clear();
  }
  bool read() {
    v1::ServerFrame frame;
    if (!stream_->Read(&frame)) return false;
    std::map<uint64_t, int> seen;
    for (const v1::CallEvent& event : frame.events()) {
      EXPECT_EQ(++seen[event.call_id()], 1) << "one event for each call in a frame";
      bodies[event.call_id()] += event.chunk().body();
      if (event.has_finished() || event.has_failed() || event.has_cancelled()) {
        EXPECT_FALSE(ended.contains(event.call_id())) << "a call ends once";
        ended[event.call_id()] = event;
      }
    }
    if (frame.has_load()) loads.push_back(frame.load());
    return true;
  }
  void read_until_ended(size_t calls) {
    while (ended.size() < calls) ASSERT_TRUE(read());
  }
  // Whether a load came that is as wanted; reads until then.
  bool read_until_load(const std::function<bool(const v1::Load&)>& wanted) {
    while (true) {
      const size_t before = loads.size();
      if (!read()) return false;
      if (loads.size() > before && wanted(loads.back())) return true;
    }
  }
  grpc::Status half_close() {
    stream_->WritesDone();
    while (read()) {
    }
    return std::exchange(stream_, nullptr)->Finish();
  }

  std::map<uint64_t, std::string> bodies;
  std::map<uint64_t, v1::CallEvent> ended;
  std::vector<v1::Load> loads;

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientFrame, v1::ServerFrame>> stream_;
  v1::ClientFrame next_;
};

class ServedTest : public ::testing::Test {
 protected:
  void serve(const Settings& settings = {}) {
    engine_ = std::make_shared<SimulatedEngine>(settings, inbox_);
    listen({.listen = "127.0.0.1:0"});
    server_->answer_with(engine_);
  }
  void listen(const ServerOptions& options) {
    server_ = std::make_unique<InferenceServer>(options, inbox_);
    enter(v1::REPLICA_STATE_READY);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Inference::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
  }
  void enter(v1::ReplicaState state) {
    v1::Load load;
    load.set_state(state);
    server_->set_load(load);
  }
  bool await(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  bool await_idle() {
    return await([this] {
      return server_->switchboard().running() == 0 && engine_->figures().running == 0;
    });
  }
  void TearDown() override {
    if (server_) server_->stop(std::chrono::milliseconds(0));
    if (engine_) engine_->stop();
  }

  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::shared_ptr<SimulatedEngine> engine_;
  std::unique_ptr<InferenceServer> server_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

}  // namespace penstock::replica::test
