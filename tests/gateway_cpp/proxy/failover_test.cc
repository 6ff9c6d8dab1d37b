#include "proxy/failover.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

using Blame = routing::Failure;
using Source = upstream::CallFailure::Source;

upstream::CallFailure failure(Source source, const std::string& code = "upstream_error",
                              v1::Fault fault = v1::FAULT_UPSTREAM,
                              v1::Retry retry = v1::RETRY_NEVER, uint32_t status = 500) {
  upstream::CallFailure failure;
  failure.source = source;
  failure.error.set_status(status);
  failure.error.set_code(code);
  failure.error.set_fault(fault);
  failure.error.set_retry(retry);
  return failure;
}

struct Case {
  const char* name;
  upstream::CallFailure failure;
  Next next;
  std::optional<Blame> blame;
};

TEST(Failover, DecidesByWhatFailedAndWhoseFaultItIs) {
  const auto retry = v1::RETRY_BEFORE_FIRST_TOKEN;
  const auto never = v1::RETRY_NEVER;
  const auto upstream = v1::FAULT_UPSTREAM;
  const std::vector<Case> cases = {
      {"unreachable", failure(Source::kUnreachable), Next::kTryAnother, Blame::kUnreachable},
      {"lost", failure(Source::kLost), Next::kTryAnother, Blame::kLost},
      {"ended", failure(Source::kEnded), Next::kTryAnother, Blame::kLost},
      {"draining", failure(Source::kReplica, "draining", upstream, retry, 503), Next::kTryAnother,
       std::nullopt},
      {"engine dead", failure(Source::kReplica, "engine_dead", upstream, never, 503), Next::kGiveUp,
       Blame::kLost},
      {"engine killed", failure(Source::kReplica, "engine_killed", upstream, never, 503),
       Next::kGiveUp, Blame::kLost},
      {"engine hung", failure(Source::kReplica, "engine_hung", upstream, never, 503), Next::kGiveUp,
       Blame::kLost},
      {"engine dead, and never had it",
       failure(Source::kReplica, "engine_dead", upstream, retry, 503), Next::kTryAnother,
       Blame::kLost},
      {"bad answer", failure(Source::kReplica, "engine_error", upstream, retry, 500),
       Next::kTryAnother, Blame::kBadAnswer},
      {"not retryable", failure(Source::kReplica, "internal"), Next::kGiveUp, Blame::kBadAnswer},
      {"client's fault", failure(Source::kReplica, "invalid_value", v1::FAULT_CLIENT, retry, 400),
       Next::kGiveUp, std::nullopt}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Failover failover;
    failover.sent_to({"r1"});
    EXPECT_EQ(failover.after(c.failure), c.next);
    EXPECT_EQ(blame_of(c.failure), c.blame);
  }
}

TEST(Failover, StopsAfterThreeReplicas) {
  Failover failover;
  const auto full =
      failure(Source::kReplica, "queue_full", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  failover.sent_to({"r1"});
  EXPECT_EQ(failover.after(full), Next::kTryAnother);
  failover.sent_to({"r2"});
  EXPECT_EQ(failover.after(full), Next::kTryAnother);
  failover.sent_to({"r3"});
  EXPECT_EQ(failover.after(full), Next::kGiveUp);
  EXPECT_EQ(failover.attempts(), 3U);
}

TEST(Failover, SendsWhatMayKillReplicasToNoThirdOne) {
  Failover failover;
  failover.sent_to({"r1"});
  EXPECT_EQ(failover.after(failure(Source::kLost)), Next::kTryAnother);
  failover.sent_to({"r2"});
  EXPECT_EQ(failover.after(failure(Source::kLost)), Next::kGiveUp);
  ASSERT_EQ(failover.deaths().size(), 2U);
  EXPECT_EQ(failover.deaths()[1].replica_id, "r2");
}

TEST(Failover, TellsHowTheEnginesEndedAsTheirReplicasSaid) {
  using admission::EngineEnd;
  const std::vector<std::pair<upstream::CallFailure, EngineEnd>> ends = {
      {failure(Source::kReplica, "engine_dead"), EngineEnd::kCrashed},
      {failure(Source::kReplica, "engine_killed"), EngineEnd::kKilled},
      {failure(Source::kReplica, "engine_hung"), EngineEnd::kHung},
      {failure(Source::kLost, "engine_dead"), EngineEnd::kLost}};
  for (const auto& [failure, end] : ends) {
    Failover failover;
    failover.sent_to({"r1"});
    failover.after(failure);
    ASSERT_EQ(failover.deaths().size(), 1U);
    EXPECT_EQ(failover.deaths()[0].end, end);
  }
}

TEST(Failover, DoesNotCountReplicasThatNeverHadTheRequest) {
  Failover failover;
  failover.sent_to({"r1"});
  EXPECT_EQ(failover.after(failure(Source::kUnreachable)), Next::kTryAnother);
  failover.sent_to({"r2"});
  EXPECT_EQ(failover.after(failure(Source::kEnded)), Next::kTryAnother);
  EXPECT_TRUE(failover.deaths().empty());
}

TEST(Failover, KnowsWhetherAnybodyMayHaveSeenTheRequest) {
  Failover failover;
  failover.sent_to({"r1"});
  failover.after(failure(Source::kUnreachable));
  EXPECT_FALSE(failover.reached_any());
  failover.sent_to({"r2"});
  failover.after(failure(Source::kEnded));
  EXPECT_TRUE(failover.reached_any());
  failover.sent_to({"r3"});
  failover.after(failure(Source::kUnreachable));
  EXPECT_TRUE(failover.reached_any());
}

TEST(Failover, BeginsAnewElsewhereButForgetsNoDeath) {
  Failover failover;
  failover.sent_to({"r1"});
  EXPECT_EQ(failover.after(failure(Source::kLost)), Next::kTryAnother);
  failover.elsewhere();
  EXPECT_TRUE(failover.tried().empty());
  EXPECT_FALSE(failover.reached_any());
  for (const auto* id : {"s1", "s2"}) {
    failover.sent_to({id});
    EXPECT_EQ(failover.after(failure(Source::kUnreachable)), Next::kTryAnother);
  }
  failover.sent_to({"s3"});
  EXPECT_EQ(failover.after(failure(Source::kLost)), Next::kGiveUp);
  EXPECT_EQ(failover.attempts(), 4U);
  EXPECT_TRUE(failover.is_deadly());
  ASSERT_EQ(failover.deaths().size(), 1U)
      << "r1 died with the request as another deployment has it";
  EXPECT_EQ(failover.deaths()[0].replica_id, "s3");
}

TEST(Failover, HoldsTheEndOfAProcessThatHasNoEngineAgainstNoRequest) {
  Failover failover;
  for (const auto* id : {"p1", "p2"}) {
    failover.sent_to({id});
    EXPECT_EQ(failover.after(failure(Source::kLost), false), Next::kTryAnother);
  }
  EXPECT_FALSE(failover.is_deadly());
}

TEST(Failover, GivesLaterDeploymentsAllTheirTries) {
  Failover failover;
  failover.sent_to({"r1"});
  failover.after(failure(Source::kLost));
  failover.sent_to({"r2"});
  EXPECT_EQ(failover.after(failure(Source::kLost)), Next::kGiveUp);
  failover.elsewhere();
  failover.sent_to({"s1"});
  EXPECT_EQ(failover.after(failure(Source::kUnreachable)), Next::kTryAnother);
}

TEST(Failover, RemembersWhomItAsked) {
  Failover failover;
  failover.sent_to({"r1"});
  failover.sent_to({"r2"});
  ASSERT_EQ(failover.tried().size(), 2U);
  EXPECT_EQ(failover.tried()[1].value, "r2");
}

}  // namespace
}  // namespace penstock::proxy
