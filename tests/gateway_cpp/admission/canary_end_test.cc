#include "admission/canary_end.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace penstock::admission {
namespace {

using Verdict = CanaryCourse::Verdict;
using Outcome = CanaryCourse::Outcome;

constexpr bool kStable = false;
constexpr bool kCandidate = true;

base::Error error(base::Kind kind, std::string drop_reason = {}) {
  base::Error error = base::make_error(kind, "the test wants it so");
  error.drop_reason = std::move(drop_reason);
  return error;
}

base::Error of_replica(unsigned status, base::Fault fault) {
  base::Error error = base::make_error(base::Kind::kUpstreamFailed, "the test wants it so");
  error.status = status;
  error.fault = fault;
  return error;
}

Outcome bad(CanaryFault fault, bool saved = false) { return {Verdict::kBad, fault, saved}; }
Outcome only(Verdict verdict) { return {.verdict = verdict}; }

// What is said of an arm that is told of these, one after the other, and then answers, or does not.
Outcome after(bool candidate, const std::vector<base::Error>& left, bool answers) {
  CanaryCourse course;
  for (const base::Error& why : left) course.left(why);
  if (answers) course.answered();
  return course.outcome(candidate);
}

Outcome after(bool candidate, const std::vector<base::Error>& left, const base::Error& end,
              bool begun = false) {
  CanaryCourse course;
  for (const base::Error& why : left) course.left(why);
  course.failed(end, begun);
  return course.outcome(candidate);
}

const base::Error kFailed = error(base::Kind::kUpstreamFailed);
const base::Error kInvalid = error(base::Kind::kInvalidValue);
const base::Error kGone = error(base::Kind::kClientGone);

TEST(CanaryFaultTest, SaysWhatBrokeInAWord) {
  const auto word = [](const base::Error& why, bool begun = false) {
    return name(canary_fault(why, begun));
  };
  EXPECT_EQ(word(kFailed), "5xx");
  EXPECT_EQ(word(error(base::Kind::kInternal)), "5xx");
  EXPECT_EQ(word(kFailed, true), "broken_stream");
  EXPECT_EQ(word(error(base::Kind::kDeadlineExceeded), true), "broken_stream");
  EXPECT_EQ(word(error(base::Kind::kDeadlineExceeded)), "timeout");
  EXPECT_EQ(word(error(base::Kind::kEngineDead)), "engine_dead");
  EXPECT_EQ(word(error(base::Kind::kShedLoad, "queue_full")), "no_place");
  EXPECT_EQ(word(error(base::Kind::kQueueDeadline, "queue_deadline")), "no_place");
  EXPECT_EQ(word(error(base::Kind::kOverloaded, "no_ready_replica")), "no_place");
  EXPECT_EQ(word(of_replica(429, base::Fault::kUpstream)), "no_place");
  EXPECT_EQ(word(of_replica(429, base::Fault::kClient)), "refused");
  EXPECT_EQ(word(of_replica(400, base::Fault::kClient)), "refused");
  EXPECT_EQ(word(of_replica(500, base::Fault::kClient)), "5xx");
  EXPECT_EQ(word(of_replica(401, base::Fault::kUpstream)), "5xx");  // its key is its operator's
  EXPECT_EQ(word(error(base::Kind::kTokenBudget, "token_budget_exceeded")), "refused");
}

TEST(CanaryFaultTest, BlamesNoArmForWhatTheClientItsTenantOrTheGatewayDid) {
  for (const base::Kind kind :
       {base::Kind::kClientGone, base::Kind::kClientSlow, base::Kind::kKeyRevoked,
        base::Kind::kDraining, base::Kind::kQuarantined}) {
    EXPECT_EQ(canary_fault(error(kind), false), CanaryFault::kNobodys);
    EXPECT_EQ(canary_fault(error(kind), true), CanaryFault::kNobodys);
  }
  for (const auto* reason :
       {"rate_limited", "quota", "gateway_full", "draining", "client_gone", "suspect_must_wait"}) {
    EXPECT_EQ(canary_fault(error(base::Kind::kShedLoad, reason), false), CanaryFault::kNobodys)
        << reason;
  }
}

TEST(CanaryCourseTest, TakesAnAnswerForOneOfItsArm) {
  EXPECT_EQ(after(kStable, {}, true), only(Verdict::kAnswered));
  EXPECT_EQ(after(kCandidate, {}, true), only(Verdict::kAnswered));
}

TEST(CanaryCourseTest, CountsWhatBreaksAgainstTheArmThatItIsOf) {
  EXPECT_EQ(after(kStable, {}, kFailed), bad(CanaryFault::kServerError));
  EXPECT_EQ(after(kCandidate, {}, kFailed, true), bad(CanaryFault::kBrokenStream));
  EXPECT_EQ(after(kCandidate, {}, error(base::Kind::kEngineDead)), bad(CanaryFault::kEngineDead));
}

TEST(CanaryCourseTest, CountsWhatTheStableArmSavedAgainstTheCandidate) {
  EXPECT_EQ(after(kCandidate, {kFailed}, true), bad(CanaryFault::kServerError, true));
  EXPECT_EQ(after(kCandidate, {error(base::Kind::kShedLoad, "queue_full")}, true),
            bad(CanaryFault::kNoPlace, true));
}

TEST(CanaryCourseTest, CountsAnOutageOfBothAgainstTheArmThatTheSessionBelongsTo) {
  const base::Error late = error(base::Kind::kDeadlineExceeded);
  EXPECT_EQ(after(kCandidate, {late}, kFailed), bad(CanaryFault::kTimeout));
  EXPECT_EQ(after(kStable, {}, kFailed), bad(CanaryFault::kServerError));
}

TEST(CanaryCourseTest, BlamesTheCandidateForARefusalThatTheStableArmDoesNotShare) {
  EXPECT_EQ(after(kCandidate, {kInvalid}, true), bad(CanaryFault::kRefused, true));
  // Its answer had begun, so it did not refuse.
  EXPECT_EQ(after(kCandidate, {kInvalid}, kFailed, true), bad(CanaryFault::kRefused));
  EXPECT_EQ(after(kCandidate, {kInvalid}, kGone, true), bad(CanaryFault::kRefused));
}

TEST(CanaryCourseTest, BlamesNobodyForWhatBothRefuse) {
  EXPECT_EQ(after(kCandidate, {kInvalid}, kInvalid), only(Verdict::kRefused));
  EXPECT_EQ(after(kStable, {}, kInvalid), only(Verdict::kRefused));
}

TEST(CanaryCourseTest, SaysNothingOfARefusalThatNobodyElseWasAskedAbout) {
  EXPECT_EQ(after(kCandidate, {}, kInvalid), only(Verdict::kNothing));
  EXPECT_EQ(after(kCandidate, {kInvalid}, kFailed), only(Verdict::kNothing));
  EXPECT_EQ(after(kCandidate, {kInvalid}, kGone), only(Verdict::kNothing));
}

TEST(CanaryCourseTest, SaysNothingOfAnInvalidRequestThatBrokeTheCandidate) {
  EXPECT_EQ(after(kCandidate, {kFailed}, kInvalid), only(Verdict::kNothing));
}

TEST(CanaryCourseTest, SaysNothingOfClientsThatLeftButWhatBrokeBeforeStaysBroken) {
  EXPECT_EQ(after(kStable, {}, kGone), only(Verdict::kNothing));
  EXPECT_EQ(after(kCandidate, {}, kGone, true), only(Verdict::kNothing));
  EXPECT_EQ(after(kCandidate, {kFailed}, kGone), bad(CanaryFault::kServerError));
}

TEST(CanaryCourseTest, TakesARungsAnswerForNoneOfItsArm) {
  EXPECT_EQ(after(kStable, {kFailed}, true), bad(CanaryFault::kServerError));
  EXPECT_EQ(after(kStable, {kFailed, kFailed, kFailed}, true), bad(CanaryFault::kServerError));
  EXPECT_EQ(after(kStable, {kInvalid}, true), only(Verdict::kRefused));
  EXPECT_EQ(after(kCandidate, {kFailed, kFailed}, true), bad(CanaryFault::kServerError));
  EXPECT_EQ(after(kCandidate, {kInvalid, kInvalid}, true), only(Verdict::kRefused));
  EXPECT_EQ(after(kCandidate, {kInvalid, kFailed}, true), only(Verdict::kNothing));
}

std::string_view finish(const std::vector<std::string>& reasons,
                        std::optional<std::uint32_t> tokens = {}, bool counts_end = true) {
  const auto finish = canary_finish(
      {.finish_reasons = reasons, .completion_tokens = tokens, .counts_end = counts_end});
  return finish ? name(*finish) : "none";
}

TEST(CanaryFinishTest, IsTheFirstBadOneOfSeveralChoices) {
  EXPECT_EQ(finish({"stop", "length", "content_filter"}, 40), "length");
  EXPECT_EQ(finish({"tool_calls", "stop"}, 40), "tool_calls");
}

TEST(CanaryFinishTest, KnowsFewWords) {
  EXPECT_EQ(finish({"abort"}, 40), "other");
  EXPECT_EQ(finish({"empty"}, 40), "other");  // ours, not an engine's
  EXPECT_EQ(finish({"function_call"}, 1), "function_call");
  EXPECT_EQ(finish({}), "none");  // an embedding
}

TEST(CanaryFinishTest, TakesAnAnswerForEmptyThatIsNothingButItsEnd) {
  EXPECT_EQ(finish({"stop"}, 1), "empty");
  EXPECT_EQ(finish({"stop"}, 2), "stop");
  EXPECT_EQ(finish({"stop", "stop"}, 3), "empty");  // one of them is
  EXPECT_EQ(finish({"stop"}), "stop");              // nobody said how many tokens
  EXPECT_EQ(finish({"tool_calls"}, 1), "tool_calls");
}

TEST(CanaryFinishTest, TakesAProvidersFirstTokenForText) {
  EXPECT_EQ(finish({"stop"}, 1, false), "stop");
  EXPECT_EQ(finish({"stop"}, 0, false), "empty");
}

}  // namespace
}  // namespace penstock::admission
