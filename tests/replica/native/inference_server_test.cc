// The server over real gRPC connections, with the simulated engine behind it.
#include "inference_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

#include "simulated/simulated_engine.h"
#include "support.h"

namespace penstock::replica {
namespace {

using simulated::Settings;
using simulated::SimulatedEngine;
using testing::chat_request;

Settings paced(double tokens_per_second) {
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
      if (event.has_finished() || event.has_failed()) ended[event.call_id()] = event;
    }
    return true;
  }
  void read_until_ended(size_t calls) {
    while (ended.size() < calls) ASSERT_TRUE(read());
  }
  grpc::Status half_close() {
    stream_->WritesDone();
    while (read()) {
    }
    return std::exchange(stream_, nullptr)->Finish();
  }

  std::map<uint64_t, std::string> bodies;
  std::map<uint64_t, v1::CallEvent> ended;

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientFrame, v1::ServerFrame>> stream_;
  v1::ClientFrame next_;
};

class InferenceServerTest : public ::testing::Test {
 protected:
  void serve(const Settings& settings = {}) {
    engine_ = std::make_shared<SimulatedEngine>(settings, inbox_);
    listen({.listen = "127.0.0.1:0"});
    server_->switchboard().set_handler(engine_);
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

TEST_F(InferenceServerTest, ManyCallsOfOneSessionAllFinish) {
  serve();
  Client client(stub_.get());
  for (uint64_t id = 1; id <= 500; ++id) {
    client.start(id, chat_request(R"("max_tokens":30,"stream":true)"));
  }
  client.send();
  client.read_until_ended(500);
  for (const auto& [id, event] : client.ended) {
    EXPECT_EQ(event.finished().usage().completion_tokens(), 30u);
    EXPECT_TRUE(client.bodies[id].ends_with("data: [DONE]\n\n"));
    EXPECT_EQ(client.bodies[id].size(), client.bodies[1].size()) << "but for the time of day";
  }
  EXPECT_TRUE(await_idle());
}

TEST_F(InferenceServerTest, ManySessionsAtOnceKeepTheirCallsApart) {
  serve();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      Client client(stub_.get());
      for (uint64_t id = 1; id <= 200; ++id) {
        client.start(id, chat_request(R"("max_tokens":5,"stream":true)"));
        client.send();
        client.read_until_ended(id);
      }
      EXPECT_EQ(client.ended.size(), 200u);
    });
  }
  threads.clear();
  EXPECT_TRUE(await_idle());
}

TEST_F(InferenceServerTest, LongAnswersFlowThroughBoundedQueues) {
  serve();
  Client client(stub_.get());
  for (uint64_t id = 1; id <= 8; ++id) {
    client.start(id, chat_request(R"("max_tokens":4000,"stream":true)"));
  }
  client.send();
  client.read_until_ended(8);
  EXPECT_GT(client.bodies[8].size(), 4000u * 100);
}

TEST_F(InferenceServerTest, ACallWithoutCreditIsHeldWhileOthersFlow) {
  serve();
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":2000,"stream":true)"), 1);
  client.send();
  ASSERT_TRUE(client.read());
  const std::string held = client.bodies[1];
  client.start(2, chat_request(R"("max_tokens":500,"stream":true)"));
  client.send();
  client.read_until_ended(1);
  EXPECT_TRUE(client.ended.contains(2));
  EXPECT_EQ(client.bodies[1], held);
  EXPECT_LT(engine_->figures().tokens, 2400u) << "the held call's queue is bounded";
  client.grant(1, 1 << 30);
  client.send();
  client.read_until_ended(2);
  EXPECT_TRUE(client.bodies[1].ends_with("data: [DONE]\n\n"));
}

TEST_F(InferenceServerTest, ACancelledCallSaysNothingMoreAndFreesTheEngine) {
  serve(paced(1000));
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  client.send();
  ASSERT_TRUE(client.read());
  EXPECT_EQ(engine_->figures().running, 1u);
  client.cancel(1);
  client.cancel(77);
  client.send();
  EXPECT_TRUE(await_idle());
  client.start(2, chat_request(R"("max_tokens":1,"stream":true)"));
  client.send();
  client.read_until_ended(1);
  EXPECT_FALSE(client.ended.contains(1));
}

TEST_F(InferenceServerTest, AClientThatVanishesFreesTheEngine) {
  serve(paced(1000));
  {
    Client client(stub_.get());
    for (uint64_t id = 1; id <= 20; ++id) {
      client.start(id, chat_request(R"("max_tokens":100000,"stream":true)"));
    }
    client.send();
    ASSERT_TRUE(client.read());
  }
  EXPECT_TRUE(await_idle());
}

TEST_F(InferenceServerTest, ClientsThatVanishInTheMiddleOfFastAnswersLeaveNothingBehind) {
  serve();
  for (int i = 0; i < 30; ++i) {
    Client client(stub_.get());
    for (uint64_t id = 1; id <= 10; ++id) {
      client.start(id, chat_request(R"("max_tokens":5000,"stream":true)"), 100'000);
    }
    client.send();
    ASSERT_TRUE(client.read());
  }
  EXPECT_TRUE(await_idle());
}

TEST_F(InferenceServerTest, AHalfClosedSessionFinishesItsCallsAndEndsWell) {
  serve(paced(500));
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":20,"stream":true)"));
  client.send();
  EXPECT_TRUE(client.half_close().ok());
  EXPECT_TRUE(client.ended[1].has_finished());
}

TEST_F(InferenceServerTest, AFrameThatCannotBeReadEndsItsSessionAloneAndLoudly) {
  serve(paced(1000));
  Client innocent(stub_.get());
  innocent.start(1, chat_request(R"("max_tokens":200,"stream":true)"));
  innocent.send();
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  client.send();
  ASSERT_TRUE(client.read());
  v1::CallRequest poisonous = chat_request(R"("max_tokens":1)");
  poisonous.set_traceparent("\xff");  // not UTF-8, which a proto3 string has to be
  client.start(2, poisonous);
  client.send();
  const grpc::Status status = client.half_close();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_NE(status.error_message().find("ClientFrame"), std::string::npos);
  innocent.read_until_ended(1);
  EXPECT_TRUE(innocent.ended[1].has_finished());
  EXPECT_TRUE(await_idle());
  const auto items = inbox_->drain();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind, Inbox::Kind::kNotice);
  EXPECT_NE(items[0].payload.find("127.0.0.1"), std::string::npos) << items[0].payload;
}

TEST_F(InferenceServerTest, WhileTheInboxIsFullSessionsAreNotRead) {
  constexpr size_t kCalls = 40;
  constexpr size_t kBodyBytes = 64 << 10;
  inbox_ = std::make_shared<Inbox>(kBodyBytes);
  listen({.listen = "127.0.0.1:0"});
  Client client(stub_.get());
  std::jthread sender([&] {
    for (uint64_t id = 1; id <= kCalls; ++id) {
      v1::CallRequest request;
      request.set_body(std::string(kBodyBytes, 'x'));
      client.start(id, request);
      client.send();
    }
  });
  size_t arrived = 0;
  while (arrived < kCalls) {
    ASSERT_TRUE(await([&] { return inbox_->full(); }));
    for (int i = 0; i < 20; ++i) {  // time for frames that should not be read
      grpc::ClientContext context;
      v1::HealthReply reply;
      ASSERT_TRUE(stub_->Health(&context, {}, &reply).ok());
    }
    const size_t taken = inbox_->drain().size();
    ASSERT_EQ(taken, 1u);
    arrived += taken;
  }
}

TEST_F(InferenceServerTest, ASessionThatGoesWhileItIsNotReadLeavesNothingBehind) {
  inbox_ = std::make_shared<Inbox>(1);
  listen({.listen = "127.0.0.1:0"});
  {
    Client client(stub_.get());
    client.start(1, chat_request(R"("max_tokens":1)"));
    client.send();
    ASSERT_TRUE(await([&] { return inbox_->full(); }));
  }
  EXPECT_TRUE(await([this] { return server_->switchboard().running() == 0; }));
  inbox_->drain();
}

// The code with which each method answers a caller with this token.
std::vector<grpc::StatusCode> codes_of(v1::Inference::Stub* stub, const std::string& token) {
  const auto with_token = [&token](grpc::ClientContext& context) {
    if (!token.empty()) context.AddMetadata("authorization", token);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  };
  grpc::ClientContext contexts[6];
  for (grpc::ClientContext& context : contexts) with_token(context);
  std::vector<grpc::StatusCode> codes;
  const auto session = stub->Session(&contexts[0]);
  session->WritesDone();
  codes.push_back(session->Finish().error_code());
  v1::CallEvent event;
  const auto call = stub->Call(&contexts[1], chat_request(R"("max_tokens":1)"));
  while (call->Read(&event)) {
  }
  codes.push_back(call->Finish().error_code());
  v1::Load load;
  const auto watch = stub->WatchLoad(&contexts[2], {});
  if (watch->Read(&load)) contexts[2].TryCancel();
  codes.push_back(watch->Finish().error_code());
  v1::HealthReply health;
  codes.push_back(stub->Health(&contexts[3], {}, &health).error_code());
  return codes;
}

TEST_F(InferenceServerTest, StrangersGetNothing) {
  engine_ = std::make_shared<SimulatedEngine>(Settings{}, inbox_);
  listen({.listen = "127.0.0.1:0", .cluster_token = "secret"});
  server_->switchboard().set_handler(engine_);
  for (const char* token : {"", "secret", "Bearer ", "Bearer secreT", "Bearer secret2"}) {
    EXPECT_THAT(codes_of(stub_.get(), token), ::testing::Each(grpc::StatusCode::UNAUTHENTICATED))
        << token;
  }
  using enum grpc::StatusCode;
  EXPECT_THAT(codes_of(stub_.get(), "Bearer secret"),
              ::testing::ElementsAre(OK, OK, CANCELLED, OK));
  for (const bool drain : {true, false}) {
    grpc::ClientContext context;
    v1::AdaptersReply adapters;
    v1::DrainReply drained;
    const grpc::Status status =
        drain ? stub_->Drain(&context, {}, &drained) : stub_->Adapters(&context, {}, &adapters);
    EXPECT_EQ(status.error_code(), UNAUTHENTICATED);
  }
}

TEST_F(InferenceServerTest, OneCallAloneIsAStreamOfItsEvents) {
  serve();
  grpc::ClientContext context;
  const auto reader = stub_->Call(&context, chat_request(R"("max_tokens":3000,"stream":true)"));
  v1::CallEvent event;
  std::string body;
  bool finished = false;
  while (reader->Read(&event)) {
    EXPECT_FALSE(finished);
    body += event.chunk().body();
    finished = event.has_finished();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(finished);
  EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
}

TEST_F(InferenceServerTest, ACallWhoseClientLeavesIsCancelled) {
  serve(paced(1000));
  {
    grpc::ClientContext context;
    const auto reader = stub_->Call(&context, chat_request(R"("max_tokens":100000,"stream":true)"));
    v1::CallEvent event;
    ASSERT_TRUE(reader->Read(&event));
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_TRUE(await_idle());
}

TEST_F(InferenceServerTest, WatchersHearTheLoadAtOnceAndEveryChange) {
  serve();
  grpc::ClientContext context;
  const auto reader = stub_->WatchLoad(&context, {});
  v1::Load load;
  ASSERT_TRUE(reader->Read(&load));
  EXPECT_EQ(load.state(), v1::REPLICA_STATE_READY);
  enter(v1::REPLICA_STATE_DRAINING);
  ASSERT_TRUE(reader->Read(&load));
  EXPECT_EQ(load.state(), v1::REPLICA_STATE_DRAINING);
  context.TryCancel();
  reader->Finish();
}

TEST_F(InferenceServerTest, LiveAndReadyAreAnsweredFromTheState) {
  serve();
  const auto ask = [&](v1::HealthDepth depth) {
    grpc::ClientContext context;
    v1::HealthRequest request;
    request.set_depth(depth);
    v1::HealthReply reply;
    EXPECT_TRUE(stub_->Health(&context, request, &reply).ok());
    return reply;
  };
  EXPECT_TRUE(ask(v1::HEALTH_DEPTH_READY).ok());
  enter(v1::REPLICA_STATE_STARTING);
  EXPECT_TRUE(ask(v1::HEALTH_DEPTH_LIVE).ok());
  EXPECT_FALSE(ask(v1::HEALTH_DEPTH_READY).ok());
  EXPECT_FALSE(ask(v1::HEALTH_DEPTH_DEEP).ok());
  EXPECT_FALSE(ask(v1::HEALTH_DEPTH_READY).detail().empty());
}

TEST_F(InferenceServerTest, ControlRequestsWaitForTheReply) {
  serve();
  std::jthread replier([this] {
    std::vector<Inbox::Item> items;
    EXPECT_TRUE(await([&] { return !(items = inbox_->drain()).empty(); }));
    v1::DrainReply reply;
    reply.set_left(3);
    server_->control_desk().reply(items.at(0).key, reply.SerializeAsString());
  });
  grpc::ClientContext context;
  v1::DrainReply reply;
  EXPECT_TRUE(stub_->Drain(&context, {}, &reply).ok());
  EXPECT_EQ(reply.left(), 3u);
}

TEST_F(InferenceServerTest, StoppingEndsStreamsAndWaitingRequests) {
  serve(paced(10));
  std::jthread waiting([this] {
    grpc::ClientContext context;
    v1::DrainReply reply;
    EXPECT_EQ(stub_->Drain(&context, {}, &reply).error_code(), grpc::StatusCode::UNAVAILABLE);
  });
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  client.send();
  ASSERT_TRUE(client.read());
  EXPECT_TRUE(await([this] { return !inbox_->drain().empty(); }));
  server_->stop(std::chrono::milliseconds(10));
  while (client.read()) {
  }
  EXPECT_FALSE(client.ended.contains(1)) << "a broken answer has no clean end";
}

TEST_F(InferenceServerTest, ATakenPortIsRefused) {
  serve();
  EXPECT_THROW(InferenceServer({.listen = server_->address()}, inbox_), std::runtime_error);
}

}  // namespace
}  // namespace penstock::replica
