// Replicas that go on with an answer otherwise than they should, and what else looks at such a one.
#include "resume_fixture.h"

namespace penstock::proxy {
namespace {

using Outcome = base::ResumeOutcome;
using Reason = base::ResumeReason;

class ResumeLiesTest : public ResumeTest {
 protected:
  // The rest comes with another head than the answer began with.
  void goes_on_otherwise() {
    say(1, event("b"));
    EXPECT_TRUE(done_);
    EXPECT_TRUE(call(1).cancelled);
    EXPECT_TRUE(reply_.cut_off);
    EXPECT_EQ(reply_.text.find(event("b")), std::string::npos) << reply_.text;
    EXPECT_EQ(resumes(Reason::kLost, Outcome::kTold), 1U);
  }
};

TEST_F(ResumeLiesTest, AnotherPromptIsAnotherAnswer) {
  ask_and_hear();
  lose(0);
  head_.set_prompt_tokens(8);
  goes_on_otherwise();
}

TEST_F(ResumeLiesTest, AnotherTimeIsAnotherAnswer) {
  ask_and_hear();
  lose(0);
  head_.set_created(head_.created() + 1);
  goes_on_otherwise();
}

TEST_F(ResumeLiesTest, AnotherKindIsAnotherAnswer) {
  ask_and_hear();
  lose(0);
  head_.set_content_type("application/json");
  goes_on_otherwise();
}

// Its last event and its end come at once, as they do.
TEST_F(ResumeLiesTest, WhatRepeatsHasNoEnd) {
  ask_and_hear(40);
  lose(0);
  say(1, event("a"), 40);
  say(1, event("b"), 2);
  reply_.stop_reading();
  say(1, event("c"));
  end(1, 43);
  reply_.read_on();
  loop_.poll();
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_FALSE(reply_.text.ends_with(kEnd));
  EXPECT_NE(reply_.text.find("its client had some of it before"), std::string::npos);
}

TEST_F(ResumeLiesTest, WhatBreaksItsWordOnceMoreIsTold) {
  ask_and_hear();
  lose(0);
  say(1, event("b"));
  refuse(1, "resume_unsupported");
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(upstream_.calls.size(), 2U) << "it is no refusal any more";
}

TEST_F(ResumeLiesTest, OneThatPromisesNoMoreIsNotResumedAgain) {
  ask_and_hear();
  lose(0);
  head_.set_resumable(false);
  say(1, event("b"));
  lose(1);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(is_logged(R"("why":"it is not resumable")"));
}

}  // namespace
}  // namespace penstock::proxy
