// Streams under way: what comes while their coroutine waits, and what they leave to it.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

// A chunk that is worth more than the credit at whose half some goes back.
const std::string kLong = "data: " + std::string(FakeUpstream::kCredit, 'x') + "\n\n";

class StreamUnderWayTest : public RequestFlowTest {
 protected:
  StreamUnderWayTest() {
    ask(kStream);
    call().chunk("data: a\n\n");
    EXPECT_EQ(reply_.text, "data: a\n\n");
  }
  void end_well() {
    call().chunk(kEnd);
    call().finish();
    EXPECT_TRUE(done_);
    EXPECT_EQ(totals().succeeded, 1U);
  }
};

TEST_F(StreamUnderWayTest, EachEventLeavesAsItComesAndIsPaidWithCredit) {
  call().chunk(kLong);
  EXPECT_EQ(reply_.text, "data: a\n\n" + kLong);
  EXPECT_GE(call().granted, kLong.size());
  end_well();
  EXPECT_EQ(reply_.text, "data: a\n\n" + kLong + kEnd);
}

TEST_F(StreamUnderWayTest, AClientThatFallsBehindGetsEveryByteAndHoldsTheReplicaMeanwhile) {
  reply_.stop_reading();
  call().chunk(kLong);
  call().chunk("data: b\n\n");
  EXPECT_EQ(reply_.text, "data: a\n\n" + kLong) << "the rest is not taken";
  EXPECT_EQ(call().granted, 0U);
  reply_.read_on();
  EXPECT_EQ(reply_.text, "data: a\n\n" + kLong + "data: b\n\n");
  EXPECT_GE(call().granted, kLong.size());
  end_well();
}

TEST_F(StreamUnderWayTest, AClientThatFallsBehindAndLeavesIsGone) {
  reply_.stop_reading();
  call().chunk(kLong);
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(call().granted, 0U);
}

TEST_F(StreamUnderWayTest, AClientWhoseLeavingShowsAtAWriteIsGone) {
  reply_.leave_unheard();
  call().chunk(kLong);
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(call().granted, 0U);
}

TEST_F(StreamUnderWayTest, AnEventThatComesWithTheEndIsTheLast) {
  v1::CallEvent last;
  last.mutable_chunk()->set_body(kEnd);
  call().put(last);
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, "data: a\n\n" + kEnd);
  EXPECT_FALSE(reply_.cut_off);
}

TEST_F(StreamUnderWayTest, AnExceptionEndsItWithAnError) {
  call().breaks = true;
  call().chunk(kLong);
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
}

TEST_F(StreamUnderWayTest, AGatewayThatEndsEndsItBetweenTwoEvents) {
  call().chunk("data: b\n\n");
  reply_.end_gateway();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
}

TEST_F(StreamUnderWayTest, IsHeldToItsSilenceAfterEachEvent) {
  for (int i = 0; i < 3; ++i) {
    pass(config_.silence - seconds(1));
    call().chunk("data: b\n\n");
  }
  EXPECT_FALSE(done_);
  pass(2 * config_.silence);
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
}

TEST_F(StreamUnderWayTest, HasNoHeartbeatBeforeItsEventsHaveBeenAwayForAnInterval) {
  const int before = reply_.writes;
  for (int i = 0; i < 4; ++i) {
    pass(config_.heartbeat / 2);
    call().chunk("data: b\n\n");
  }
  EXPECT_EQ(reply_.writes, before);
  EXPECT_EQ(reply_.writes_along, 4);
  pass(config_.heartbeat + seconds(1));
  EXPECT_EQ(reply_.writes, before + 1);
}

TEST_F(StreamUnderWayTest, ChunksGoAlongFromWhereTheyLieAndAreCounted) {
  for (int i = 0; i < 3; ++i) call().chunk("data: b\n\n", 1);
  EXPECT_EQ(reply_.writes_along, 3);
  EXPECT_EQ(reply_.writes, 1) << "the first, with the head";
  end_well();
  EXPECT_NE(log_.text().find("\"events\":5,"), std::string::npos);
  EXPECT_EQ(reply_.text, "data: a\n\ndata: b\n\ndata: b\n\ndata: b\n\n" + kEnd);
}

TEST_F(StreamUnderWayTest, AnEmptyChunkSaysNothing) {
  call().chunk("", 0);
  EXPECT_EQ(reply_.text, "data: a\n\n");
  end_well();
}

// It must not overtake one that waits.
TEST_F(StreamUnderWayTest, AChunkBehindOneThatWaitsWaitsToo) {
  v1::CallEvent kept;  // as what protobuf has to read is
  kept.mutable_chunk()->add_groups()->set_stop_reason("\xc3\xa9");
  kept.mutable_chunk()->set_body("data: b\n\n");
  EXPECT_TRUE(call().put(kept));
  v1::CallEvent next;
  next.mutable_chunk()->set_body("data: c\n\n");
  EXPECT_TRUE(call().put(next));
  EXPECT_EQ(reply_.text, "data: a\n\n");
  call().chunk("data: d\n\n");
  EXPECT_EQ(reply_.text, "data: a\n\ndata: b\n\ndata: c\n\ndata: d\n\n");
  end_well();
}

// Both were read at once, each in a message of its own.
TEST_F(StreamUnderWayTest, ALastEventIsTakenBackByALastWordThatCameWithIt) {
  call().chunk("data: b\n\n");
  EXPECT_EQ(reply_.writes_along, 1);
  v1::CallEvent last;
  last.mutable_chunk()->set_body(kEnd);
  EXPECT_TRUE(call().put(last)) << "the stream's coroutine has to see to it";
  call().finish({"error"});
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(reply_.text.find("[DONE]"), std::string::npos) << reply_.text;
  EXPECT_EQ(totals().succeeded, 0U);
}

TEST_F(StreamUnderWayTest, ALastEventThatCameAloneIsBelievedThoughTheReplicaFailsAfterIt) {
  call().chunk(kEnd);
  EXPECT_EQ(reply_.text, "data: a\n\n" + kEnd);
  call().fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  EXPECT_TRUE(done_);
  EXPECT_FALSE(reply_.cut_off);
  EXPECT_EQ(reply_.text, "data: a\n\n" + kEnd);
}

}  // namespace
}  // namespace penstock::proxy
