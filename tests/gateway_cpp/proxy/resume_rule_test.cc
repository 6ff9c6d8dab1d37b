// The rule by which a broken answer goes on, alone.
#include "proxy/resume_rule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::proxy {
namespace {

using How = GoesOn::How;
using Reason = base::ResumeReason;
using Source = upstream::CallFailure::Source;

upstream::CallFailure failed_by(Source source, const std::string& code = "upstream_error",
                                v1::Retry retry = v1::RETRY_NEVER) {
  upstream::CallFailure made{.source = source, .error = {}};
  made.error.set_code(code);
  made.error.set_retry(retry);
  return made;
}

TEST(ResumeReasonTest, IsWhatNoOtherReplicaWouldDoLikewise) {
  upstream::CallFailure stopped = failed_by(Source::kReplica);
  stopped.stopped = true;
  struct Case {
    upstream::CallFailure failure;
    std::optional<Reason> reason;
  };
  const auto aboard = [](const char* code) { return failed_by(Source::kReplica, code); };
  const std::vector<Case> cases = {
      {failed_by(Source::kLost), Reason::kLost},
      {failed_by(Source::kEnded), Reason::kLost},
      {failed_by(Source::kUnreachable), std::nullopt},
      {stopped, Reason::kLost},
      {aboard("draining"), Reason::kLost},
      {aboard("engine_stopped"), Reason::kLost},
      {aboard("engine_dead"), Reason::kCrash},
      {aboard("engine_killed"), Reason::kKill},
      {aboard("engine_hung"), Reason::kHang},
      {failed_by(Source::kReplica, "engine_dead", v1::RETRY_BEFORE_FIRST_TOKEN), Reason::kLost},
      {aboard("engine_error"), std::nullopt},
      {failed_by(Source::kReplica, "oom_contained", v1::RETRY_BEFORE_FIRST_TOKEN), std::nullopt},
      {aboard("upstream_error"), std::nullopt},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(resume_reason(one.failure), one.reason) << one.failure.error.code();
  }
}

TEST(ResumeRuleTest, HoldsNobodyBackForWhatIsNoSignOfItsOwnDoing) {
  for (const auto reason : {Reason::kKill, Reason::kHang, Reason::kLost, Reason::kHandOver}) {
    for (const unsigned crashes : {0U, 1U, 2U}) {
      const BrokenAnswer young{.reason = reason, .resumable = true, .crashes = crashes};
      EXPECT_EQ(goes_on(young).how, How::kAtOnce) << base::name(reason);
    }
  }
}

TEST(ResumeRuleTest, HasYoungAnswersAndThoseOfASecondCrashGoApart) {
  struct Case {
    BrokenAnswer answer;
    How how;
  };
  const auto crashed = [](uint64_t tokens, unsigned crashes, bool was_suspect = false) {
    return BrokenAnswer{.reason = Reason::kCrash,
                        .resumable = true,
                        .tokens = tokens,
                        .crashes = crashes,
                        .was_suspect = was_suspect};
  };
  const std::vector<Case> cases = {
      {crashed(0, 1), How::kApart},           {crashed(31, 1), How::kApart},
      {crashed(32, 1), How::kAtOnce},         {crashed(5'000, 1), How::kAtOnce},
      {crashed(5'000, 2), How::kApart},       {crashed(31, 2), How::kApart},
      {crashed(5'000, 1, true), How::kApart},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(goes_on(one.answer).how, one.how)
        << one.answer.tokens << " tokens, " << one.answer.crashes << " crashes";
  }
}

TEST(ResumeRuleTest, LeavesASuspectApartWhateverEndsItsEngine) {
  for (const auto reason : {Reason::kKill, Reason::kHang, Reason::kLost, Reason::kHandOver}) {
    const BrokenAnswer answer{
        .reason = reason, .resumable = true, .tokens = 99, .was_suspect = true};
    EXPECT_EQ(goes_on(answer).how, How::kApart) << base::name(reason);
  }
}

TEST(ResumeRuleTest, EndsWhatMayGoNowhere) {
  BrokenAnswer answer{.resumable = true, .tokens = 99};
  EXPECT_EQ(goes_on(answer).how, How::kAtOnce);
  answer.resumes = 1;
  EXPECT_EQ(goes_on(answer).how, How::kAtOnce) << "twice at most";
  answer.resumes = 2;
  EXPECT_EQ(goes_on(answer), (GoesOn{How::kNot, "it was resumed twice"}));
  answer.reason = Reason::kHandOver;
  EXPECT_EQ(goes_on(answer).how, How::kAtOnce) << "its replica leaves as it should";
  answer = {.resumable = false, .tokens = 99};
  EXPECT_EQ(goes_on(answer), (GoesOn{How::kNot, "it is not resumable"}));
  answer = {.resumable = true, .tokens = 99, .quarantined = true};
  EXPECT_EQ(goes_on(answer), (GoesOn{How::kNot, "it is quarantined"}));
}

}  // namespace
}  // namespace penstock::proxy
