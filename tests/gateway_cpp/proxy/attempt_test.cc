// The tries of one request, alone: its replicas are never called.
#include "proxy/attempt.h"

#include <gtest/gtest.h>

#include "dispatch/believed_routes.h"
#include "fixed_clock.h"
#include "routing/snapshots.h"
#include "runtime/signal.h"

namespace penstock::proxy {
namespace {

base::Error fault(const std::string& message) {
  return base::make_error(base::Kind::kUpstreamFailed, message);
}

class AttemptTest : public testing::Test {
 protected:
  AttemptTest() {
    routes_.replace({.version = 1,
                     .deployments = {routing::deployment("mini")},
                     .replicas = {routing::replica("r1", "mini"), routing::replica("r2", "mini")}});
  }

  void go_to(size_t i) {
    Target target(routes_.of("mini").replicas().at(i));
    attempts_.sent_to(target);
    attempts_.begin(std::move(target), std::make_unique<upstream::Call>(nullptr, i, 0, news_));
  }

  test::FixedClock clock_;
  dispatch::BelievedRoutes routes_{clock_};
  runtime::Signal news_;
  Attempts attempts_;
};

TEST_F(AttemptTest, IsSentAndAnswersAndIsAnswered) {
  go_to(0);
  EXPECT_EQ(attempts_.now().state(), Try::kSent);
  EXPECT_FALSE(attempts_.now().has_news());
  attempts_.now().answers();
  attempts_.now().answered();
  EXPECT_EQ(attempts_.now().state(), Try::kAnswered);
}

TEST_F(AttemptTest, KeepsWhatTheLastThatWasInVainFailedWith) {
  go_to(0);
  attempts_.close(fault("first"));
  EXPECT_FALSE(attempts_.is_under_way());
  go_to(1);
  attempts_.now().answers();
  attempts_.close(fault("second"));
  EXPECT_FALSE(attempts_.is_under_way());
  EXPECT_EQ(attempts_.last()->message, "second");
  EXPECT_EQ(attempts_.failover().tried().size(), 2U);
}

TEST_F(AttemptTest, StaysUnderWayWhereNoOtherMayFollow) {
  go_to(0);
  attempts_.now().answers();
  attempts_.failed(fault("broke off"));
  EXPECT_TRUE(attempts_.is_under_way()) << "what it cost is known by its call";
  EXPECT_EQ(attempts_.last()->message, "broke off");
}

TEST_F(AttemptTest, ThatIsCalledBackDoesNotCount) {
  go_to(0);
  attempts_.recall();
  EXPECT_FALSE(attempts_.is_under_way());
  EXPECT_EQ(attempts_.failover().attempts(), 0U);
}

TEST_F(AttemptTest, CountsAtAnotherDeploymentWhereNobodyHasHadIt) {
  go_to(0);
  attempts_.close(fault("first"));
  attempts_.leave();
  EXPECT_FALSE(attempts_.last());
  EXPECT_TRUE(attempts_.failover().tried().empty());
  EXPECT_EQ(attempts_.failover().attempts(), 1U);
}

TEST_F(AttemptTest, HasOneEnd) {
  for (const auto next : {Try::kSent, Try::kAnswers, Try::kAnswered}) {
    EXPECT_FALSE(kAttempt.allow(Try::kAnswered, next));
  }
  EXPECT_FALSE(kAttempt.allow(Try::kSent, Try::kAnswered));
}

}  // namespace
}  // namespace penstock::proxy
