// The server over real gRPC connections, with the simulated engine behind it.
#include "inference_server.h"

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

class InferenceServerTest : public ServedTest {};

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

TEST_F(InferenceServerTest, ACancelIsAnsweredWithWhatTheCallCost) {
  serve(paced(1000));
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  client.send();
  ASSERT_TRUE(client.read());
  EXPECT_EQ(engine_->figures().running, 1u);
  client.cancel(1);
  client.cancel(77);
  client.send();
  client.read_until_ended(1);
  ASSERT_TRUE(client.ended[1].has_cancelled());
  const v1::Usage& usage = client.ended[1].cancelled().usage();
  EXPECT_EQ(usage.completion_tokens(), engine_->figures().tokens);
  EXPECT_EQ(usage.prompt_tokens(), engine_->figures().prompt_tokens);
  EXPECT_TRUE(await_idle());
  client.start(1, chat_request(R"("max_tokens":1,"stream":true)"));
  client.send();
  client.ended.clear();
  client.read_until_ended(1);
  EXPECT_TRUE(client.ended[1].has_finished()) << "the id is free again";
}

TEST_F(InferenceServerTest, ACancelIsAnsweredWhereTheCallHasNoCreditLeft) {
  serve();
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":2000,"stream":true)"), 1);
  client.send();
  ASSERT_TRUE(client.read());
  client.cancel(1);
  client.send();
  client.read_until_ended(1);
  EXPECT_EQ(client.ended[1].cancelled().usage().completion_tokens(), engine_->figures().tokens);
  EXPECT_TRUE(await_idle());
}

TEST_F(InferenceServerTest, ACancelOfAWaitingCallIsAnswered) {
  Settings settings = paced(1000);
  settings.max_running = 1;
  serve(settings);
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  client.start(2, chat_request(R"("max_tokens":100000,"stream":true)"));
  client.cancel(2);
  client.send();
  client.read_until_ended(1);
  EXPECT_EQ(client.ended[2].cancelled().usage().prompt_tokens(), 2u);
  EXPECT_EQ(client.ended[2].cancelled().usage().completion_tokens(), 0u);
}

TEST_F(InferenceServerTest, CancelsThatMeetTheirEndsAreEachAnsweredOnce) {
  serve();
  Client client(stub_.get());
  uint64_t told = 0;
  for (uint64_t id = 1; id <= 300; ++id) {
    client.start(id, chat_request(R"("max_tokens":200,"stream":true)"), 40'000);
    client.send();
    client.cancel(id);
    client.send();
  }
  client.read_until_ended(300);
  for (const auto& [id, event] : client.ended) {
    told += event.finished().usage().completion_tokens();
    told += event.cancelled().usage().completion_tokens();
  }
  EXPECT_TRUE(await_idle());
  EXPECT_EQ(told, engine_->figures().tokens) << "every token is on somebody's bill, once";
}

TEST_F(InferenceServerTest, AFailedCallSaysWhatItCost) {
  Settings settings = paced(1000);
  settings.behaviour.die_after_tokens = 5;
  serve(settings);
  Client client(stub_.get());
  client.start(1, chat_request(R"("max_tokens":100,"stream":true)"));
  client.send();
  EXPECT_TRUE(await([this] { return !inbox_->drain().empty(); })) << "it tells that it died";
  server_->switchboard().fail_all({});
  client.read_until_ended(1);
  EXPECT_EQ(client.ended[1].failed().usage().completion_tokens(), 5u);
  EXPECT_EQ(client.ended[1].failed().usage().prompt_tokens(), 2u);
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

TEST_F(InferenceServerTest, AUnaryAnswerLargerThanAnyMessageComesInParts) {
  serve();
  const auto request = chat_request(R"("max_tokens":1000000)");
  grpc::ClientContext context;
  const auto reader = stub_->Call(&context, request);  // takes messages of 4 MiB at most
  v1::CallEvent event;
  std::string body;
  uint32_t events = 0;
  while (reader->Read(&event)) {
    EXPECT_LE(event.chunk().body().size(), 256u << 10);
    body += event.chunk().body();
    events += event.chunk().events();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(event.has_finished());
  EXPECT_EQ(events, 1u);
  EXPECT_GT(body.size(), 4u << 20);
  EXPECT_TRUE(body.starts_with("{") && body.ends_with("}"));
  Client client(stub_.get());
  client.start(1, request, 256 << 10);
  client.send();
  size_t granted = 256 << 10;
  while (client.ended.empty()) {
    ASSERT_TRUE(client.read());
    const size_t came = client.bodies[1].size();
    if (came < granted) continue;
    client.grant(1, came + (256 << 10) - granted);
    granted = came + (256 << 10);
    client.send();
  }
  EXPECT_EQ(client.bodies[1].size(), body.size());
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
