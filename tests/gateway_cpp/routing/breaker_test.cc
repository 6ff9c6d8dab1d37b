#include "routing/breaker.h"

#include <gtest/gtest.h>

namespace penstock::routing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Last = Breaker::Last;
using State = Breaker::State;

class BreakerTest : public testing::Test {
 protected:
  // Its doubt of a lost process is over by itself.
  void half_open(std::uint32_t calls = 0) {
    now_ += breaker_.fail(Failure::kLost, Last::kNo, now_);
    breaker_.advance(calls, now_);
    ASSERT_EQ(breaker_.state(), State::kHalfOpen);
  }

  Breaker breaker_;
  base::SteadyTime now_{std::chrono::hours(1)};
};

TEST_F(BreakerTest, OpensAtOnceForALostProcessAndForTwiceAsLongEachTime) {
  for (const auto doubt :
       {seconds(1), seconds(2), seconds(4), seconds(8), seconds(16), seconds(30), seconds(30)}) {
    EXPECT_EQ(breaker_.fail(Failure::kUnreachable, Last::kNo, now_), doubt);
    EXPECT_EQ(breaker_.until(), now_ + doubt);
    breaker_.advance(0, now_ + doubt - milliseconds(1));
    EXPECT_EQ(breaker_.state(), State::kOpen);
    now_ += doubt;
    breaker_.advance(0, now_);
    EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  }
}

TEST_F(BreakerTest, ForgivesTwoBadAnswersInARow) {
  EXPECT_EQ(breaker_.fail(Failure::kBadAnswer, Last::kNo, now_), seconds(0));
  EXPECT_EQ(breaker_.fail(Failure::kNoFirstEvent, Last::kNo, now_), seconds(0));
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.fail(Failure::kNoFirstEvent, Last::kNo, now_), seconds(1));
  EXPECT_EQ(breaker_.reason(), "slow");
}

TEST_F(BreakerTest, AGoodAnswerBetweenThemBeginsAnew) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(breaker_.fail(Failure::kBadAnswer, Last::kNo, now_), seconds(0));
    EXPECT_EQ(breaker_.fail(Failure::kBadAnswer, Last::kNo, now_), seconds(0));
    breaker_.answer();
  }
}

TEST_F(BreakerTest, CountsTheManyCallsOfOneDeathOnce) {
  EXPECT_EQ(breaker_.fail(Failure::kLost, Last::kNo, now_), seconds(1));
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(breaker_.fail(Failure::kLost, Last::kNo, now_), seconds(0));
  }
  now_ += seconds(1);
  breaker_.advance(0, now_);
  EXPECT_EQ(breaker_.fail(Failure::kLost, Last::kNo, now_), seconds(2));
}

TEST_F(BreakerTest, OpensForTheLastReplicaOnlyWhenItsProcessIsLost) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(breaker_.fail(Failure::kBadAnswer, Last::kYes, now_), seconds(0));
  }
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_GT(breaker_.fail(Failure::kLoadEnded, Last::kYes, now_), seconds(0));
}

TEST_F(BreakerTest, HalfOpenTakesOneProbeAtATime) {
  half_open();
  EXPECT_TRUE(breaker_.may_probe(now_));
  breaker_.sent(now_);
  EXPECT_FALSE(breaker_.may_probe(now_));
  breaker_.released();  // without a word on how it ended
  EXPECT_TRUE(breaker_.may_probe(now_));
}

TEST_F(BreakerTest, ACallOfBeforeThatEndsIsNotTakenForTheProbe) {
  half_open(2);
  breaker_.sent(now_);
  breaker_.released();
  breaker_.released();
  EXPECT_FALSE(breaker_.may_probe(now_));
  breaker_.released();
  EXPECT_TRUE(breaker_.may_probe(now_));
}

TEST_F(BreakerTest, AProbeThatTakesItsTimeMakesRoomForAnother) {
  half_open();
  breaker_.sent(now_);
  EXPECT_FALSE(breaker_.may_probe(breaker_.due() - milliseconds(1)));
  now_ = breaker_.due();
  EXPECT_TRUE(breaker_.may_probe(now_));
  breaker_.advance(0, now_);
  EXPECT_EQ(breaker_.due(), base::SteadyTime::max());
  EXPECT_TRUE(breaker_.may_probe(now_));
}

TEST_F(BreakerTest, AProbeThatIsAnsweredClosesIt) {
  half_open();
  breaker_.sent(now_);
  breaker_.answer();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.due(), base::SteadyTime::max());
}

TEST_F(BreakerTest, AProbeThatFailsOpensItForLongerWhateverFailed) {
  half_open();
  EXPECT_EQ(breaker_.fail(Failure::kBadAnswer, Last::kNo, now_), seconds(1));
  now_ += seconds(1);
  breaker_.advance(0, now_);
  EXPECT_EQ(breaker_.fail(Failure::kLost, Last::kNo, now_), seconds(4));
}

TEST_F(BreakerTest, AProcessThatIsBackEndsTheDoubtOfALostOneAlone) {
  breaker_.fail(Failure::kLost, Last::kNo, now_);
  breaker_.back();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  for (int i = 0; i < 3; ++i) breaker_.fail(Failure::kBadAnswer, Last::kNo, now_);
  breaker_.back();
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_EQ(breaker_.reason(), "failing");
}

TEST_F(BreakerTest, AProcessThatComesAndGoesIsDoubtedForLongerEachTime) {
  EXPECT_EQ(breaker_.fail(Failure::kLost, Last::kNo, now_), seconds(1));
  breaker_.back();
  EXPECT_EQ(breaker_.fail(Failure::kLost, Last::kNo, now_), seconds(2));
}

}  // namespace
}  // namespace penstock::routing
