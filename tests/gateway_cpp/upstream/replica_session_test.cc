#include "upstream/replica_session.h"

#include <gtest/gtest.h>

#include "session_fixture.h"

namespace penstock::upstream {
namespace {

TEST_F(ReplicaSessionTest, SendsTheStartsOfOneTurnInOneFrame) {
  auto session = session_to(replica_.address());
  const auto first = session->open(request("a"), news_);
  const auto second = session->open(request("b"), more_news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  EXPECT_EQ(replica_.frames().size(), 1U);
  const auto starts = replica_.starts();
  EXPECT_EQ(starts[0].request().request_id(), "a");
  EXPECT_EQ(starts[0].request().body(), "{\"model\":\"mini\"}");
  EXPECT_EQ(starts[0].initial_credit_bytes(), kCredit);
  EXPECT_NE(starts[0].call_id(), starts[1].call_id());
}

TEST_F(ReplicaSessionTest, SendsManyLargeBodiesInSeveralFrames) {
  // As when a replica died and all that it had to do comes here in one turn.
  const std::string body(700'000, 'x');
  auto session = session_to(replica_.address());
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 10; ++i) {
    const std::string id = std::to_string(i);
    calls.push_back(session->open({.request_id = id, .body = body}, news_));
  }
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == calls.size(); }));
  for (const auto& frame : replica_.frames()) EXPECT_LE(frame.starts_size(), 2);
}

TEST_F(ReplicaSessionTest, SendsALargeBodyInItsPlaceAmongOthers) {
  const auto body = std::make_shared<const std::string>(3'000'000, 'x');
  auto session = session_to(replica_.address());
  const auto first = session->open(request("a"), news_);
  const auto second = session->open({.request_id = "b"}, more_news_, body);
  const auto third = session->open(request("c"), news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 3; }));
  const auto starts = replica_.starts();
  EXPECT_EQ(starts[0].request().request_id(), "a");
  EXPECT_EQ(starts[1].request().request_id(), "b");
  EXPECT_EQ(starts[1].request().body(), *body);
  EXPECT_EQ(starts[1].initial_credit_bytes(), kCredit);
  EXPECT_EQ(starts[2].call_id(), third->id());
  EXPECT_TRUE(loop_.run_until([&] { return body.use_count() == 1; }));
}

TEST_F(ReplicaSessionTest, LetsGoOfTheBodiesThatItNeverSentWhenItEnds) {
  RawPeer peer(loop_.io(), 1'000);
  peer.reads = false;
  const auto body = std::make_shared<const std::string>(3'000'000, 'x');
  auto session = session_to(peer.address());
  const auto call = session->open(request("a"), news_, body);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  EXPECT_GT(body.use_count(), 1);
  peer.hang_up();
  ASSERT_TRUE(loop_.run_until([&] { return session->ended(); }));
  EXPECT_TRUE(call->failed());
  EXPECT_EQ(body.use_count(), 1) << "they hold their shares of a budget";
}

TEST_F(ReplicaSessionTest, LetsGoOfTheBodyOfACancelledCallThatTheReplicaDoesNotRead) {
  RawPeer peer(loop_.io(), 1'000);
  peer.reads = false;
  const auto body = std::make_shared<const std::string>(3'000'000, 'x');
  auto session = session_to(peer.address());
  auto first = session->open(request("a"), news_, body);
  auto second = session->open(request("b"), more_news_, body);
  const auto third = session->open(request("c"), news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  second->cancel();
  EXPECT_EQ(body.use_count(), 2) << "the other call has it yet";
  first->cancel();
  EXPECT_EQ(body.use_count(), 1) << "it holds its share of a budget";
  peer.reads = true;
  std::vector<std::string> ids;
  std::vector<uint64_t> cancels;
  MessageReader reader;
  size_t read = 0;
  ASSERT_TRUE(talk_until(peer, [&] {
    const auto bytes =
        std::string_view(peer.http2.body).substr(std::exchange(read, peer.http2.body.size()));
    EXPECT_TRUE(reader.feed(bytes, 1UL << 30U, [&](std::string_view message) {
      v1::ClientFrame frame;
      EXPECT_TRUE(frame.ParseFromString(std::string(message)));
      for (const auto& start : frame.starts()) ids.push_back(start.request().request_id());
      cancels.insert(cancels.end(), frame.cancels().begin(), frame.cancels().end());
      return true;
    }));
    return cancels.size() == 2;
  }));
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(ReplicaSessionTest, HandsEachCallItsOwnEventsOfAFrame) {
  auto session = session_to(replica_.address());
  const auto first = session->open(request("a"), news_);
  const auto second = session->open(request("b"), more_news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  v1::ServerFrame frame;
  auto& event = add_chunk(frame, first->id(), "one");
  event.mutable_head()->set_content_type("text/event-stream");
  add_chunk(frame, second->id(), "two").mutable_finished()->mutable_usage()->set_prompt_tokens(7);
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(loop_.run_until([&] { return first->has_bytes() && second->ended(); }));
  EXPECT_TRUE(first->has_head());
  EXPECT_EQ(first->head().content_type, "text/event-stream");
  EXPECT_EQ(text_of(*first), "one");
  EXPECT_FALSE(first->ended());
  EXPECT_EQ(text_of(*second), "two");
  EXPECT_TRUE(second->finished());
  EXPECT_EQ(second->outcome().usage->prompt_tokens, 7U);
  EXPECT_EQ(session->running(), 1U);
}

TEST_F(ReplicaSessionTest, KeepsTheTokensOfAnAnswerForWhoAskedForThem) {
  auto session = session_to(replica_.address());
  auto asking = request("a");
  asking.token_groups = true;
  const auto call = session->open(asking, news_);
  const auto other = session->open(request("b"), more_news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  v1::ServerFrame frame;
  for (const auto& [id, token] : {std::pair{call->id(), 7U}, {call->id(), 8U}, {other->id(), 9U}}) {
    auto& group = *add_chunk(frame, id, "x").mutable_chunk()->add_groups();
    group.set_choice(1);
    group.add_token_ids(token);
  }
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(loop_.run_until([&] { return other->has_bytes(); }));
  EXPECT_TRUE(other->pending_groups().empty());
  std::string ids;
  call->pending_groups().each([&ids](const TokenGroup& group) {
    EXPECT_EQ(group.choice, 1U);
    ids += group.ids;
  });
  EXPECT_EQ(ids, "\7\10");
  EXPECT_EQ(text_of(*call), "xx");
  EXPECT_TRUE(call->pending_groups().empty());
}

TEST_F(ReplicaSessionTest, KeepsTheOrderOfManyFrames) {
  auto session = session_to(replica_.address());
  const auto call = session->open(request("a"), news_);
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.starts().empty(); }));
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    v1::ServerFrame frame;
    const std::string body = std::to_string(i) + std::string(500, '.');
    add_chunk(frame, call->id(), body);
    expected += body;
    ASSERT_TRUE(replica_.send(frame));
  }
  std::string got;
  ASSERT_TRUE(loop_.run_until([&] {
    got += text_of(*call);
    return got.size() >= expected.size();
  }));
  EXPECT_EQ(got, expected);
}

TEST_F(ReplicaSessionTest, GivesCreditBackOnceHalfOfItIsUsed) {
  auto session = session_to(replica_.address());
  const auto call = session->open(request("a"), news_);
  call->wrote(kCredit / 2 - 1);
  loop_.poll();
  call->wrote(1);
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.credits().empty(); }));
  ASSERT_EQ(replica_.credits().size(), 1U);
  EXPECT_EQ(replica_.credits()[0].call_id(), call->id());
  EXPECT_EQ(replica_.credits()[0].bytes(), kCredit / 2);
}

TEST_F(ReplicaSessionTest, TellsTheReplicaOfACancelledCallOnce) {
  auto session = session_to(replica_.address());
  auto call = session->open(request("a"), news_);
  const auto other = session->open(request("b"), more_news_);
  const uint64_t id = call->id();
  call->cancel();
  call->cancel();
  call.reset();
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.cancels().empty(); }));
  EXPECT_EQ(replica_.cancels(), std::vector<uint64_t>{id});
  // Events that were on their way find nobody, and the others go on.
  v1::ServerFrame frame;
  add_chunk(frame, id, "late");
  add_chunk(frame, other->id(), "here");
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(loop_.run_until([&] { return other->has_bytes(); }));
  EXPECT_EQ(text_of(*other), "here");
}

TEST_F(ReplicaSessionTest, DoesNotCancelWhatHasEnded) {
  auto session = session_to(replica_.address());
  auto call = session->open(request("a"), news_);
  auto other = session->open(request("b"), more_news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  v1::ServerFrame frame;
  add_chunk(frame, call->id(), "all").mutable_finished();
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(loop_.run_until([&] { return call->ended(); }));
  const uint64_t other_id = other->id();
  call.reset();
  other.reset();
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.cancels().empty(); }));
  EXPECT_EQ(replica_.cancels(), std::vector<uint64_t>{other_id});
}

TEST_F(ReplicaSessionTest, FailsEveryCallWhenTheReplicaDies) {
  auto session = session_to(replica_.address());
  const auto first = session->open(request("a"), news_);
  const auto second = session->open(request("b"), more_news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  v1::ServerFrame frame;
  add_chunk(frame, first->id(), "begun");
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(loop_.run_until([&] { return first->has_bytes(); }));
  replica_.kill();
  ASSERT_TRUE(loop_.run_until([&] { return first->failed() && second->failed(); }));
  EXPECT_EQ(first->failure().source, CallFailure::Source::kEnded) << "its server says goodbye";
  EXPECT_EQ(first->failure().error.status(), 502U);
  EXPECT_EQ(first->failure().error.retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
  EXPECT_EQ(text_of(*first), "begun");
  EXPECT_TRUE(session->ended());
}

TEST_F(ReplicaSessionTest, KnowsOfEachCallWhetherItWasSent) {
  // The replica says nothing before it dies: what it was sent may be what killed it.
  auto session = session_to(replica_.address());
  const auto sent = session->open(request("a"), news_);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 1; }));
  ASSERT_FALSE(session->heard());
  replica_.kill();
  ASSERT_TRUE(loop_.run_until([&] { return sent->failed(); }));
  EXPECT_NE(sent->failure().source, CallFailure::Source::kUnreachable);
  const auto late = session->open(request("b"), more_news_);
  EXPECT_EQ(late->failure().source, CallFailure::Source::kUnreachable);
}

TEST_F(ReplicaSessionTest, LosesWhatWasSentWhenTheConnectionBreaks) {
  RawPeer peer(loop_.io());
  auto session = session_to(peer.address());
  const auto call = session->open(request("a"), news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  peer.hang_up();
  ASSERT_TRUE(loop_.run_until([&] { return call->failed(); }));
  EXPECT_EQ(call->failure().source, CallFailure::Source::kLost);
  EXPECT_NE(log_.text().find("the connection broke"), std::string::npos);
}

TEST_F(ReplicaSessionTest, HasNotSentWhatThePeerHadNoRoomFor) {
  RawPeer peer(loop_.io(), 70'000);
  peer.reads = false;
  auto session = session_to(peer.address());
  const auto small = session->open(request("a"), news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  const std::string large(200'000, 'x');
  const auto held = session->open({.request_id = "b", .body = large}, more_news_);
  ASSERT_TRUE(talk_until(peer, [&] { return peer.http2.body.size() == 70'000; }));
  peer.hang_up();
  ASSERT_TRUE(loop_.run_until([&] { return small->failed() && held->failed(); }));
  EXPECT_EQ(small->failure().source, CallFailure::Source::kLost);
  EXPECT_EQ(held->failure().source, CallFailure::Source::kUnreachable);
}

TEST_F(ReplicaSessionTest, TellsAReplicaThatRefusesFromOneThatDied) {
  RawPeer peer(loop_.io());
  auto session = session_to(peer.address());
  const auto call = session->open(request("a"), news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  peer.say(peer.http2.answer(""));
  peer.say(peer.http2.finish("16"));
  ASSERT_TRUE(talk_until(peer, [&] { return call->failed(); }));
  EXPECT_EQ(call->failure().source, CallFailure::Source::kEnded);
  EXPECT_NE(log_.text().find("gRPC status 16"), std::string::npos);
}

TEST_F(ReplicaSessionTest, TakesNoCallsWhenTheReplicaGoesAwayAndFinishesWhatItHas) {
  RawPeer peer(loop_.io());
  auto session = session_to(peer.address());
  const auto running = session->open(request("a"), news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  peer.say(peer.http2.go_away(1));
  ASSERT_TRUE(talk_until(peer, [&] { return session->closed_to_calls(); }));
  const auto late = session->open(request("b"), more_news_);
  EXPECT_TRUE(late->failed());
  EXPECT_EQ(late->failure().source, CallFailure::Source::kUnreachable);
  v1::ServerFrame frame;
  add_chunk(frame, running->id(), "still here").mutable_finished();
  peer.say(peer.http2.answer(message_of(frame)));
  ASSERT_TRUE(talk_until(peer, [&] { return running->finished(); }));
  EXPECT_EQ(text_of(*running), "still here");
}

TEST_F(ReplicaSessionTest, FailsCallsToAReplicaThatIsNotThere) {
  const std::string address = replica_.address();
  replica_.kill();
  auto session = session_to(address);
  const auto call = session->open(request("a"), news_);
  ASSERT_TRUE(loop_.run_until([&] { return call->failed(); }));
  EXPECT_EQ(call->failure().source, CallFailure::Source::kUnreachable);
  runtime::Signal late_news;
  const auto late = session->open(request("b"), late_news);
  EXPECT_TRUE(late->failed());
}

TEST_F(ReplicaSessionTest, PassesOnWhatTheReplicaSaysOfAFailure) {
  auto session = session_to(replica_.address());
  const auto call = session->open(request("a"), news_);
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.starts().empty(); }));
  v1::ServerFrame frame;
  auto& event = *frame.add_events();
  event.set_call_id(call->id());
  event.mutable_failed()->mutable_error()->set_code("context_length_exceeded");
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(loop_.run_until([&] { return call->failed(); }));
  EXPECT_EQ(call->failure().source, CallFailure::Source::kReplica);
  EXPECT_EQ(call->failure().error.code(), "context_length_exceeded");
}

TEST_F(ReplicaSessionTest, MayGoWhileItsFramesAreOnTheirWay) {
  auto session = session_to(replica_.address());
  auto call = session->open(request("a"), news_);
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.starts().empty(); }));
  v1::ServerFrame frame;
  add_chunk(frame, call->id(), "unread");
  for (int i = 0; i < 20; ++i) replica_.send(frame);
  call.reset();
  session.reset();
  loop_.poll();
}

}  // namespace
}  // namespace penstock::upstream
