// Answers that break and go on at another replica, as their clients and the books see it.
#include "http/metrics_page.h"
#include "resume_fixture.h"

namespace penstock::proxy {
namespace {

using Outcome = base::ResumeOutcome;
using Reason = base::ResumeReason;

TEST_F(ResumeTest, GoesOnAtAnotherReplicaWithWhatItsClientHas) {
  ask(kStream);
  say(0, event("a"), 3);
  say(0, event("b") + event("c"), 2, 2);
  lose(0);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  const v1::CallRequest& request = call(1).request;
  EXPECT_EQ(call(1).replica, "r2");
  EXPECT_EQ(request.request_id(), "req_1");
  EXPECT_EQ(request.body(), kStream);
  EXPECT_TRUE(request.token_groups());
  ASSERT_EQ(request.resume().groups_size(), 2);
  EXPECT_EQ(request.resume().groups(0).token_ids_size(), 3);
  EXPECT_EQ(request.resume().events(), 3U);
  EXPECT_EQ(request.resume().created(), 1'700'000'123);
  EXPECT_EQ(request.resume().cached_tokens(), 4U);
  say(1, event("d"));
  end(1, 6);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, event("a") + event("b") + event("c") + event("d") + kEnd);
  EXPECT_FALSE(reply_.cut_off);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kResumed), 1U);
  EXPECT_TRUE(is_logged(R"("resumes":1,"resumed_from":"r1")")) << log_text_;
}

TEST_F(ResumeTest, WritesWhatCameBeforeTheBreak) {
  ask_and_hear();
  reply_.stop_reading();
  say(0, event("b"));
  say(0, event("c"), 2);
  lose(0);
  EXPECT_EQ(upstream_.calls.size(), 1U) << "its client is behind";
  reply_.read_on();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).request.resume().events(), 3U);
  say(1, event("d"));
  end(1, 44);
  EXPECT_EQ(reply_.text, event("a") + event("b") + event("c") + event("d") + kEnd);
}

TEST_F(ResumeTest, TellsOfWhatOneCallSaysInTheEnd) {
  ask_and_hear(40);
  lose(0);
  say(1, event("b"), 2);
  end(1, 42);
  EXPECT_EQ(used().prompt_tokens, 7U) << "once";
  EXPECT_EQ(used().completion_tokens, 42U) << "each once";
  EXPECT_EQ(used().cached_tokens, 4U);
  EXPECT_EQ(used().requests, 1U);
  EXPECT_TRUE(is_logged(R"("prompt_tokens":7,"completion_tokens":42,"cached_tokens":4)"));
}

TEST_F(ResumeTest, IsPaidForAsSeenWhereNobodyGoesOn) {
  serve({"r1"});
  ask_and_hear(40);
  lose(0);
  EXPECT_FALSE(done_);
  pass(seconds(10));
  EXPECT_TRUE(done_);
  EXPECT_EQ(used().prompt_tokens, 7U);
  EXPECT_EQ(used().completion_tokens, 40U);
}

TEST_F(ResumeTest, BreaksTwiceAndIsToldTheThirdTime) {
  serve({"r1", "r2", "r3", "r4"});
  ask_and_hear();
  lose(0);
  say(1, event("b"));
  lose(1);
  say(2, event("c"));
  EXPECT_EQ(call(2).request.resume().groups_size(), 2);
  EXPECT_EQ(call(2).request.resume().events(), 2U);
  lose(2);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 3U);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_TRUE(reply_.text.starts_with(event("a") + event("b") + event("c") + "data: {\"error\""));
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kResumed), 2U);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kTold), 1U);
  EXPECT_EQ(used().completion_tokens, 42U);
}

TEST_F(ResumeTest, BreaksAgainBeforeTheRestHasBegun) {
  ask_and_hear();
  lose(0);
  lose(1);
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r3") << "where it broke it does not go again";
  say(2, event("b"));
  end(2, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(used().prompt_tokens, 7U);
  EXPECT_EQ(used().completion_tokens, 41U);
}

class ResumeRefusalTest : public ResumeTest, public testing::WithParamInterface<const char*> {};

TEST_P(ResumeRefusalTest, HasAnotherReplicaGoOn) {
  ask_and_hear();
  lose(0);
  refuse(1, GetParam());
  ASSERT_EQ(upstream_.calls.size(), 3U);
  say(2, event("b"));
  end(2, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_TRUE(is_logged(R"("resumes":1,)")) << "it is one";
}

INSTANTIATE_TEST_SUITE_P(All, ResumeRefusalTest,
                         testing::Values("queue_full", "draining", "resume_unsupported",
                                         "adapter_slots_full"));

TEST_F(ResumeTest, TriesThreeReplicasForTheRest) {
  serve({"r1", "r2", "r3", "r4", "r5"});
  ask_and_hear();
  lose(0);
  refuse(1, "queue_full");
  lose(2, Source::kUnreachable);
  refuse(3, "queue_full");
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 4U);
  EXPECT_TRUE(reply_.text.find("the connection ended") != std::string::npos)
      << "what broke it: " << reply_.text;
}

TEST_F(ResumeTest, NeverTellsItsClientOfARefusalOfTheRest) {
  ask_and_hear();
  lose(0);
  refuse(1, "context_length_exceeded", 400, v1::FAULT_CLIENT, v1::RETRY_NEVER);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text.find("context_length_exceeded"), std::string::npos) << reply_.text;
  EXPECT_NE(reply_.text.find("the connection ended"), std::string::npos);
}

TEST_F(ResumeTest, WaitsForAnEqualReplica) {
  serve({"r1", "r2"});
  report(1, "c2");
  ask_and_hear();
  lose(0);
  EXPECT_EQ(upstream_.calls.size(), 1U) << "one of another configuration is none";
  pass(seconds(9));
  EXPECT_FALSE(done_);
  report(1, "c1");
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  say(1, event("b"));
  end(1, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
}

TEST_F(ResumeTest, GoesOnWhereItBrokeOnceThatIsBack) {
  serve({"r1"});
  ask_and_hear();
  lose(0);
  EXPECT_EQ(upstream_.calls.size(), 1U) << "something speaks against it";
  routes_.of("mini").note_back(routes_.replica("mini", 0));
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).request.resume().events(), 1U);
  say(1, event("b"));
  end(1, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
}

TEST_F(ResumeTest, IsToldWhereNoEqualReplicaComes) {
  serve({"r1", "r2"});
  report(1, "c1", false);
  ask_and_hear();
  lose(0);
  report(0, "c1", false);
  pass(milliseconds(9'900));
  EXPECT_FALSE(done_);
  pass(milliseconds(200));
  EXPECT_TRUE(done_);
  EXPECT_NE(reply_.text.find("No other replica could go on with the answer within 10"),
            std::string::npos)
      << reply_.text;
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kTold), 1U);
}

TEST_F(ResumeTest, WaitsForRoomAsLongAsAnyRequest) {
  limits_.max_ongoing = 1;
  limits_.queue_deadline = seconds(30);
  serve({"r1", "r2"});
  FakeReply other;
  ask_and_hear();
  ask_as(other, kStream);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  lose(0);
  pass(seconds(20));
  EXPECT_FALSE(done_) << "longer than for a replica that is not there";
  reply_.text.clear();  // of heartbeats, too
  say(1, event("x"));
  end(1, 1);
  ASSERT_EQ(upstream_.calls.size(), 3U);
  say(2, event("b"));
  end(2, 41);
  EXPECT_EQ(reply_.text, event("b") + kEnd);
}

TEST_F(ResumeTest, IsToldAtTheQueueDeadline) {
  limits_.max_ongoing = 1;
  limits_.queue_deadline = seconds(30);
  serve({"r1", "r2"});
  FakeReply other;
  ask_and_hear();
  ask_as(other, kStream);
  lose(0);
  pass(milliseconds(30'100));
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  other.leave();
  loop_.poll();
}

TEST_F(ResumeTest, KeepsItsClientAwakeInThePause) {
  config_.heartbeat = seconds(1);
  serve({"r1"});
  ask_and_hear();
  lose(0);
  for (int i = 0; i < 24; ++i) pass(milliseconds(100));
  EXPECT_EQ(reply_.text, event("a") + ": ping\n\n: ping\n\n");
}

TEST_F(ResumeTest, EndsWithItsClientInThePause) {
  serve({"r1"});
  ask_and_hear();
  lose(0);
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kClientLeft), 1U);
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_EQ(resume_bytes_.held(), 0U);
}

TEST_F(ResumeTest, EndsWithItsClientBeforeTheRestHasBegun) {
  ask_and_hear();
  lose(0);
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call(1).cancelled);
  EXPECT_EQ(in_flight(1), 0U);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kClientLeft), 1U);
}

TEST_F(ResumeTest, EndsWithTheGatewayInThePause) {
  serve({"r1"});
  ask_and_hear();
  lose(0);
  reply_.end_gateway();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
}

TEST_F(ResumeTest, EndsWithItsKeyInThePause) {
  serve({"r1"});
  Ask asked;
  asked.request_id = "req_1";
  asked.endpoint = endpoint_;
  asked.body = kStream;
  asked.received = clock_.steady_now();
  asked.caller = caller();
  asked.caller.key_id = "k1";
  loop_.spawn(run(std::move(asked)));
  loop_.poll();
  say(0, event("a"));
  lose(0);
  ended_keys_ = {"k1"};
  serve({"r1"});
  pass(milliseconds(50));
  EXPECT_TRUE(done_);
  EXPECT_NE(reply_.text.find("was revoked while"), std::string::npos) << reply_.text;
}

TEST_F(ResumeTest, HoldsTheDeadlineOfTheFirstEvent) {
  limits_.first_event_deadline = seconds(5);
  serve({"r1", "r2", "r3"});
  ask_and_hear();
  lose(0);
  pass(milliseconds(5'100));
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call(1).cancelled);
  EXPECT_NE(reply_.text.find("No other replica could go on"), std::string::npos) << reply_.text;
}

TEST_F(ResumeTest, GoesOnFromAReplicaThatFallsSilent) {
  config_.silence = seconds(5);
  ask_and_hear();
  call(0).keeps_cancelled = true;
  pass(milliseconds(5'100));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  say(1, event("b"));
  end(1, 41);
  call(0).acknowledge(7, 90);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(used().completion_tokens, 41U) << "what the silent one made nobody has";
  EXPECT_EQ(resumes(Reason::kHang, Outcome::kResumed), 1U);
}

TEST_F(ResumeTest, StaysAsItWasWithoutThePromise) {
  head_.set_resumable(false);
  ask_and_hear();
  lose(0);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kTold), 1U);
}

TEST_F(ResumeTest, StaysAsItWasWhereItIsOff) {
  limits_.resume = false;
  serve({"r1", "r2"});
  ask_and_hear();
  lose(0);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kTold), 0U);
  EXPECT_EQ(http::metrics_page(metrics_, {}).find("resumes_total{"), std::string::npos);
}

TEST_F(ResumeTest, BeginsOnceMoreWhereItsClientHasNothing) {
  head_.set_resumable(false);
  ask(kStream);
  v1::CallEvent said;
  *said.mutable_head() = head_;
  deliver(0, said);
  EXPECT_TRUE(reply_.streamed);
  lose(0);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_FALSE(call(1).request.has_resume());
  say(1, event("a"));
  end(1, 1);
  EXPECT_EQ(reply_.text, event("a") + kEnd);
}

TEST_F(ResumeTest, KeepsToWhatWasNamedWhereItBegan) {
  auto ask_pirate = std::string(R"({"model":"mini:pirate","stream":true,"messages":[{}]})");
  ask(ask_pirate);
  const auto first = call(0).request;
  say(0, event("a"), 40);
  limits_.max_completion_tokens = 5;
  serve({"r1", "r2"});
  lose(0);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).request.adapter(), first.adapter());
  EXPECT_EQ(call(1).request.adapter_digest(), first.adapter_digest());
  EXPECT_EQ(call(1).request.max_completion_tokens(), first.max_completion_tokens());
  reply_.leave();
  loop_.poll();
}

TEST_F(ResumeTest, EndsWithItsDeployment) {
  ask_and_hear();
  routes_.replace({.version = 2, .deployments = {}, .replicas = {}});
  lose(0);
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(upstream_.calls.size(), 1U);
}

}  // namespace
}  // namespace penstock::proxy
