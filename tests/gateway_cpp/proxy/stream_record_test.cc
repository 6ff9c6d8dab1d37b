// What is kept of a stream's answer, and of which streams.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class StreamRecordTest : public RequestFlowTest {
 protected:
  StreamRecordTest() {
    limits_.resume = true;
    serve_from({"r1"});
  }
  void ask_and_begin(const std::string& body) {
    ask(body);
    ASSERT_TRUE(loop_.run_until([this] { return !upstream_.calls.empty(); }));
    call().facts.set_resumable(true);
    say("data: a\n\n");
  }
  // With a token; True: it came with nothing that waits.
  void say(const std::string& event) {
    v1::CallEvent said;
    *said.mutable_head() = call().facts;
    said.mutable_head()->set_content_type(call().content_type);
    if (has_begun_) said.clear_head();
    has_begun_ = true;
    said.mutable_chunk()->set_body(event);
    said.mutable_chunk()->set_events(1);
    said.mutable_chunk()->set_tokens(1);
    said.mutable_chunk()->add_groups()->add_token_ids(151'643);
    if (call().put(said)) call().call->news().raise();
    loop_.poll();
  }
  void end_well() {
    call().chunk(kEnd);
    call().finish();
    EXPECT_TRUE(done_);
  }

 private:
  bool has_begun_ = false;
};

TEST_F(StreamRecordTest, KeepsTokensThatGoAlongUntilItsEnd) {
  ask_and_begin(kStream);
  EXPECT_TRUE(call().request.token_groups());
  const size_t least = resume_bytes_.held();
  EXPECT_GT(least, 0U);
  for (int i = 0; i < 200; ++i) say("data: b\n\n");
  EXPECT_GT(reply_.writes_along, 100) << "tokens keep no event from going along";
  EXPECT_GE(resume_bytes_.held(), 800U);
  end_well();
  EXPECT_EQ(resume_bytes_.held(), 0U);
  EXPECT_EQ(shard_.resume_no_room.value(), 0U);
}

TEST_F(StreamRecordTest, AsksForNoTokensOfAUnaryAnswer) {
  ask(kUnary);
  EXPECT_FALSE(call().request.token_groups());
}

TEST_F(StreamRecordTest, AsksForNoTokensWhereTheDeploymentWantsNone) {
  limits_.resume = false;
  serve_from({"r1"});
  ask_and_begin(kStream);
  EXPECT_FALSE(call().request.token_groups());
  EXPECT_EQ(resume_bytes_.held(), 0U);
  end_well();
}

TEST_F(StreamRecordTest, KeepsNothingOfAnAnswerThatCouldGoOnNowhere) {
  ask(kStream);
  say("data: a\n\n");
  EXPECT_EQ(resume_bytes_.held(), 0U);
  EXPECT_EQ(shard_.resume_no_room.value(), 0U);
  end_well();
}

TEST_F(StreamRecordTest, RunsOnWithoutThePromiseWhereThereIsNoRoom) {
  runtime::BodyShare others(resume_bytes_);
  ASSERT_TRUE(others.grow_to(resume_bytes_.total()));
  ask_and_begin(kStream);
  EXPECT_EQ(shard_.resume_no_room.value(), 1U);
  others.shrink_to(0);
  say("data: b\n\n");
  EXPECT_EQ(resume_bytes_.held(), 0U) << "what it lacks never comes back";
  end_well();
  EXPECT_EQ(shard_.resume_no_room.value(), 1U);
}

TEST_F(StreamRecordTest, KeepsALargeBodyInTheBudgetForResumes) {
  const std::string rest = R"({"model":"mini","stream":true,"messages":[{}],"x":[)";
  const std::string large = rest + std::string(80'000, '1') + "]}";
  ask_and_begin(large);
  EXPECT_GE(resume_bytes_.held(), large.size());
  end_well();
  EXPECT_EQ(resume_bytes_.held(), 0U);
}

TEST_F(StreamRecordTest, RunsOnWithoutThePromiseWhereThereIsNoRoomForItsBody) {
  runtime::BodyShare others(resume_bytes_);
  ASSERT_TRUE(others.grow_to(resume_bytes_.total() / 2));
  const std::string rest = R"({"model":"mini","stream":true,"messages":[{}],"x":[)";
  ask_and_begin(rest + std::string(80'000, '1') + "]}");
  EXPECT_EQ(resume_bytes_.held(), others.bytes());
  EXPECT_EQ(shard_.resume_no_room.value(), 1U);
  end_well();
}

}  // namespace
}  // namespace penstock::proxy
