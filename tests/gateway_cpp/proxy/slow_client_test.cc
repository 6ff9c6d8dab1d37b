// Answers whose clients do not take what is written to them.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class SlowClientTest : public RequestFlowTest {};

TEST_F(SlowClientTest, FreesTheReplicasSlotWhenTheCallHasEndedAndNotWhenTheClientHasRead) {
  ask(kStream);
  call().chunk("data: a\n\n");
  EXPECT_EQ(in_flight(), 1U);
  reply_.stop_reading();
  call().chunk("data: b\n\n");
  call().chunk("data: c\n\ndata: [DONE]\n\n", 2);
  call().finish();
  EXPECT_FALSE(done_);
  EXPECT_EQ(in_flight(), 0U) << "the client still reads, the replica is free";
  reply_.read_on();
  reply_.read_on();
  EXPECT_TRUE(done_);
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SlowClientTest, DoesNotTakeASlowClientForASilentEngine) {
  ask(kStream);
  reply_.stop_reading();
  call().chunk("data: a\n\n");
  pass(2 * config_.silence);
  reply_.read_on();
  EXPECT_FALSE(done_);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(totals().succeeded, 1U);
}

TEST_F(SlowClientTest, TakesNothingMoreForAClientThatLaterTurnsOutNotToRead) {
  ask(kStream);
  reply_.put_off();
  reply_.stop_reading();
  call().chunk("data: a\n\n");
  reply_.signal().raise();
  call().chunk("data: b\n\n");
  EXPECT_EQ(reply_.text, "data: a\n\n");
  pass(2 * config_.silence);
  reply_.read_on();
  EXPECT_FALSE(done_) << "the engine was not asked for more meanwhile";
  EXPECT_EQ(reply_.text, "data: a\n\ndata: b\n\n");
}

TEST_F(SlowClientTest, EndsForAClientThatLeavesWithWhatWasPutOff) {
  ask(kStream);
  reply_.put_off();
  reply_.stop_reading();
  call().chunk("data: a\n\n");
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
}

TEST_F(SlowClientTest, WaitsForAClientThatReadsItsShortAnswerLater) {
  ask(kUnary);
  reply_.stop_reading();
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  EXPECT_FALSE(done_);
  EXPECT_EQ(in_flight(), 0U) << "the replica is free";
  reply_.read_on();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, "{}");
  EXPECT_EQ(totals().succeeded, 1U);
}

TEST_F(SlowClientTest, DoesNotCountAShortAnswerThatItsClientNeverRead) {
  ask(kUnary);
  reply_.stop_reading();
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_EQ(totals().succeeded, 0U);
  EXPECT_EQ(totals().cancelled, 1U);
}

}  // namespace
}  // namespace penstock::proxy
