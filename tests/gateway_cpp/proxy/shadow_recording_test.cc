// A rule without a candidate: requests are recorded.
#include "shadow_fixture.h"

namespace penstock::proxy {
namespace {

using admission::ShadowOutcome;

class RecordingTest : public ShadowTest {
 protected:
  RecordingTest() {
    rule_.candidate = "";
    publish();
  }
};

TEST_F(RecordingTest, HandsARequestAndItsAnswerOverOnceItHasSettledAndAsksNobody) {
  ask(kUnary);
  EXPECT_TRUE(pairs_.pairs.empty());
  answer(0, R"({"from":"mini"})");
  EXPECT_EQ(reply_.text, R"({"from":"mini"})");
  EXPECT_EQ(upstream_.calls.size(), 1U);
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().rule(), "u1");
  EXPECT_EQ(pair().body(), kUnary);
  EXPECT_EQ(pair().primary().body(), R"({"from":"mini"})");
  EXPECT_EQ(pair().primary().usage().completion_tokens(), 2U);
  EXPECT_FALSE(pair().has_candidate());
  EXPECT_FALSE(pair().has_again());
  EXPECT_EQ(shadow_bytes_.held(), 0U);
  EXPECT_EQ(shadows_.size(), 0U);
}

TEST_F(RecordingTest, IsNotHeldUpByHowManyShadowsMayBeUnderWay) {
  rule_.max_concurrent = 0;
  publish();
  ask(kStream);
  stream(0, "{1}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().primary().body(), reply_.text);
}

TEST_F(RecordingTest, LeavesOutWhatWasAskedUnderARuleThatHasEndedSince) {
  ask(kUnary);
  rule_.uid = "u2";
  publish();
  answer(0, "{}");
  EXPECT_TRUE(pairs_.pairs.empty());
  EXPECT_EQ(count(ShadowOutcome::kNotComparable), 1U);
}

}  // namespace
}  // namespace penstock::proxy
