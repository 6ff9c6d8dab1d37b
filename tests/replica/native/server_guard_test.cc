// What keeps the server's callers apart: who sends what cannot be read, too much, or is a stranger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "served.h"

namespace penstock::replica {
namespace {

using test::chat_request;
using test::Client;
using test::paced;
using test::ServedTest;
using test::Settings;
using test::SimulatedEngine;

class ServerGuardTest : public ServedTest {};

TEST_F(ServerGuardTest, AFrameThatCannotBeReadEndsItsSessionAloneAndLoudly) {
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

TEST_F(ServerGuardTest, WhileTheInboxIsFullSessionsAreNotRead) {
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

TEST_F(ServerGuardTest, ASessionThatGoesWhileItIsNotReadLeavesNothingBehind) {
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

TEST_F(ServerGuardTest, StrangersGetNothing) {
  engine_ = std::make_shared<SimulatedEngine>(Settings{}, inbox_);
  listen({.listen = "127.0.0.1:0", .callers_token = "secret"});
  server_->answer_with(engine_);
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

}  // namespace
}  // namespace penstock::replica
