#include "microserving_service.h"

#include <gmock/gmock.h>

#include <deque>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "penstock/v1/microserving.grpc.pb.h"
#include "python_handler.h"
#include "served.h"
#include "split_handler.h"
#include "unary_call.h"

namespace penstock::replica {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Python is played by the test: what comes by the inbox is answered by `write_many`.
class MicroServingServiceTest : public test::ServedTest {
 protected:
  void begin() {
    serve();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    kv_ = v1::MicroServing::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
  }
  // The next item that Python would see.
  Inbox::Item next_item() {
    EXPECT_TRUE(await([&] {
      for (Inbox::Item& item : inbox_->drain()) items_.push_back(std::move(item));
      return !items_.empty();
    }));
    if (items_.empty()) return {};
    Inbox::Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }
  void write(uint64_t key, v1::CallEvent event) {
    Written written;
    written.key = key;
    written.other = std::make_unique<v1::CallEvent>(std::move(event));
    write_many(&server_->switchboard(), {&written, 1});
  }
  void answer(uint64_t key, const std::string& body) {
    v1::CallEvent head;
    head.mutable_head()->set_content_type("application/protobuf");
    write(key, head);
    Written written;
    written.key = key;
    written.body = body;
    write_many(&server_->switchboard(), {&written, 1});
    v1::CallEvent end;
    end.mutable_finished();
    write(key, end);
  }
  std::future<grpc::Status> look_up(v1::LookupReply* reply, grpc::ClientContext* context) {
    return std::async(std::launch::async, [this, reply, context] {
      v1::LookupRequest request;
      request.mutable_prompt()->add_token_ids(7);
      return kv_->Lookup(context, request, reply);
    });
  }

  std::deque<Inbox::Item> items_;
  std::unique_ptr<v1::MicroServing::Stub> kv_;
};

TEST_F(MicroServingServiceTest, AnRpcIsACallByItsNameAndItsAnswerTheReply) {
  begin();
  v1::LookupReply reply;
  grpc::ClientContext context;
  auto status = look_up(&reply, &context);
  const Inbox::Item item = next_item();
  ASSERT_EQ(item.kind, Inbox::Kind::kStart);
  v1::CallRequest call;
  ASSERT_TRUE(call.ParseFromString(item.payload));
  EXPECT_EQ(call.path(), "/penstock.v1.MicroServing/Lookup");
  v1::LookupRequest request;
  ASSERT_TRUE(request.ParseFromString(call.body()));
  EXPECT_EQ(request.prompt().token_ids(0), 7u);
  v1::LookupReply made;
  made.set_matched_len(48);
  answer(item.key, made.SerializeAsString());
  EXPECT_TRUE(status.get().ok());
  EXPECT_EQ(reply.matched_len(), 48u);
  EXPECT_TRUE(await_idle());
}

TEST_F(MicroServingServiceTest, ALargeReplyComesWhole) {
  begin();
  v1::LookupReply reply;
  grpc::ClientContext context;
  auto status = look_up(&reply, &context);
  v1::LookupReply made;
  made.set_block_size(16);
  made.GetReflection()->MutableUnknownFields(&made)->AddLengthDelimited(100,
                                                                        std::string(1 << 20, 'x'));
  answer(next_item().key, made.SerializeAsString());
  EXPECT_TRUE(status.get().ok());
  EXPECT_EQ(reply.block_size(), 16u);
}

TEST_F(MicroServingServiceTest, AFailureIsAStatusThatBeginsWithItsCause) {
  begin();
  v1::LookupReply reply;
  grpc::ClientContext context;
  auto status = look_up(&reply, &context);
  v1::CallEvent event;
  event.mutable_failed()->mutable_error()->set_status(409);
  event.mutable_failed()->mutable_error()->set_code("no_lease");
  event.mutable_failed()->mutable_error()->set_message("there is none");
  write(next_item().key, event);
  const grpc::Status told = status.get();
  EXPECT_EQ(told.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(told.error_message(), "no_lease: there is none");
}

TEST_F(MicroServingServiceTest, AClientThatLeavesCancelsTheCall) {
  begin();
  v1::LookupReply reply;
  grpc::ClientContext context;
  auto status = look_up(&reply, &context);
  const Inbox::Item started = next_item();
  context.TryCancel();
  EXPECT_EQ(status.get().error_code(), grpc::StatusCode::CANCELLED);
  const Inbox::Item cancelled = next_item();
  EXPECT_EQ(cancelled.kind, Inbox::Kind::kCancel);
  EXPECT_EQ(cancelled.key, started.key);
  answer(started.key, "too late");  // and harms nobody
  EXPECT_TRUE(await_idle());
}

TEST_F(MicroServingServiceTest, AReplicaThatIsNotReadyRefuses) {
  begin();
  enter(v1::REPLICA_STATE_DRAINING);
  v1::LookupReply reply;
  grpc::ClientContext context;
  const grpc::Status told = look_up(&reply, &context).get();
  EXPECT_EQ(told.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(told.error_message(), StartsWith("draining: "));
}

TEST_F(MicroServingServiceTest, StartGenerateStreamsTheEventsOfItsCall) {
  begin();
  v1::StartGenerateRequest request;
  request.mutable_call()->set_request_id("r1");
  grpc::ClientContext context;
  auto stream = kv_->StartGenerate(&context, request);
  const Inbox::Item item = next_item();
  v1::CallRequest call;
  ASSERT_TRUE(call.ParseFromString(item.payload));
  EXPECT_EQ(call.path(), "/penstock.v1.MicroServing/StartGenerate");
  EXPECT_EQ(call.request_id(), "r1");
  answer(item.key, "data: 1\n\n");
  std::string body;
  v1::CallEvent event;
  while (stream->Read(&event)) body += event.chunk().body();
  EXPECT_EQ(body, "data: 1\n\n");
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(MicroServingServiceTest, TokensOfRoutersAreToldInAnyState) {
  begin();
  enter(v1::REPLICA_STATE_STARTING);
  v1::KeepRouterTokensRequest request;
  request.set_valid_ms(5000);
  v1::KeepRouterTokensReply reply;
  grpc::ClientContext context;
  auto status = std::async(std::launch::async,
                           [&] { return kv_->KeepRouterTokens(&context, request, &reply); });
  const Inbox::Item item = next_item();
  EXPECT_EQ(item.kind, Inbox::Kind::kTokens);
  server_->control_desk().reply(item.key, "");
  EXPECT_TRUE(status.get().ok());
}

TEST_F(MicroServingServiceTest, NobodyIsAnsweredWithoutTheCallersToken) {
  engine_ = std::make_shared<test::SimulatedEngine>(test::Settings(), inbox_);
  listen({.listen = "127.0.0.1:0", .callers_token = "secret"});
  kv_ = v1::MicroServing::NewStub(
      grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  v1::LookupReply reply;
  grpc::ClientContext context;
  EXPECT_EQ(look_up(&reply, &context).get().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext streaming;
  auto stream = kv_->StartGenerate(&streaming, {});
  v1::CallEvent event;
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext telling;
  v1::KeepRouterTokensReply kept;
  EXPECT_EQ(kv_->KeepRouterTokens(&telling, {}, &kept).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

// Beside an engine of this process.
TEST_F(MicroServingServiceTest, OnSessionsOnlyWhatIsAboutKvGoesToPython) {
  begin();
  test::Client client(stub_.get());
  v1::CallRequest moved = test::chat_request(R"("max_tokens":2)");
  moved.mutable_kv()->set_seq_id("r1/kv");
  v1::CallRequest hinted = test::chat_request(R"("max_tokens":2)");
  hinted.mutable_kv()->set_moved_tokens(16);
  v1::CallRequest verb;
  verb.set_method("POST");
  verb.set_path("/penstock.v1.MicroServing/Lookup");
  client.start(1, test::chat_request(R"("max_tokens":2)"));
  client.start(2, moved);
  client.start(3, verb);
  client.start(4, hinted);
  client.send();
  for (int i = 0; i < 2; ++i) {
    const Inbox::Item item = next_item();
    EXPECT_EQ(item.kind, Inbox::Kind::kStart);
    answer(item.key, "python");
  }
  client.read_until_ended(4);
  EXPECT_THAT(client.bodies[1], HasSubstr("chat.completion"));
  EXPECT_EQ(client.bodies[2], "python");
  EXPECT_EQ(client.bodies[3], "python");
  EXPECT_THAT(client.bodies[4], HasSubstr("chat.completion"));
}

}  // namespace
}  // namespace penstock::replica
