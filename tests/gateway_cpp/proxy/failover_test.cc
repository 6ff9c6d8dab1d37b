#include "proxy/failover.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

using Source = upstream::CallFailure::Source;

upstream::CallFailure failure(Source source, const std::string& code = "upstream_error",
                              v1::Fault fault = v1::FAULT_UPSTREAM,
                              v1::Retry retry = v1::RETRY_NEVER) {
  upstream::CallFailure failure;
  failure.source = source;
  failure.error.set_code(code);
  failure.error.set_fault(fault);
  failure.error.set_retry(retry);
  return failure;
}

struct Case {
  const char* name;
  upstream::CallFailure failure;
  Next next;
  bool against_replica;
};

TEST(Failover, DecidesByWhatFailedAndWhoseFaultItIs) {
  const auto retry = v1::RETRY_BEFORE_FIRST_TOKEN;
  const std::vector<Case> cases = {
      {"unreachable", failure(Source::kUnreachable), Next::kTryAnother, true},
      {"lost", failure(Source::kLost), Next::kTryAnother, true},
      {"draining", failure(Source::kReplica, "draining", v1::FAULT_UPSTREAM, retry),
       Next::kTryAnother, false},
      {"engine dead", failure(Source::kReplica, "engine_dead", v1::FAULT_UPSTREAM, retry),
       Next::kTryAnother, true},
      {"not retryable", failure(Source::kReplica, "internal"), Next::kGiveUp, false},
      {"client's fault", failure(Source::kReplica, "invalid_value", v1::FAULT_CLIENT, retry),
       Next::kGiveUp, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Failover failover;
    failover.sent_to({"r1"});
    EXPECT_EQ(failover.after(c.failure), c.next);
    EXPECT_EQ(speaks_against_replica(c.failure), c.against_replica);
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
