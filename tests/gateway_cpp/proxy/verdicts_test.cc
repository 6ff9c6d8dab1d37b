// What failures mean for replicas, requests and clients.
#include <algorithm>

#include "base/trace_context.h"
#include "verdicts_fixture.h"

namespace penstock::proxy {
namespace {

using admission::Suspicion;

TEST_F(VerdictsTest, GivesTheReplicaNoTraceThatIsNone) {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  ask(kUnary, good);
  EXPECT_EQ(call().request.traceparent(), good);
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  done_ = false;
  ask(kUnary, "\xff");
  EXPECT_EQ(call(1).request.traceparent(), "");
  EXPECT_EQ(reply_.header("x-penstock-trace-id").size(), 32U);
  v1::CallRequest read;
  EXPECT_TRUE(read.ParseFromString(call(1).request.SerializeAsString()));
}

TEST_F(VerdictsTest, CarriesNoRequestOnWhoseEngineDied) {
  for (const std::string code : {"engine_dead", "engine_killed", "engine_hung"}) {
    serve_from({"r1" + code, "r2" + code});
    upstream_.calls.clear();
    done_ = false;
    ask(R"({"model":"mini","messages":[{}],"user":")" + code + "\"}");
    engine_dies(0, code);
    EXPECT_TRUE(done_);
    EXPECT_EQ(upstream_.calls.size(), 1U) << "it may be what killed the engine";
    EXPECT_EQ(reply_.status, 503U);
    EXPECT_NE(reply_.text.find("\"engine_dead\""), std::string::npos);
    EXPECT_EQ(reply_.header("x-should-retry"), "true");
    EXPECT_EQ(reply_.header("retry-after"), "1") << "another replica is ready";
  }
}

TEST_F(VerdictsTest, TellsWhenTheReplicaIsExpectedBack) {
  expected_ready_at_ = clock_.wall_now() + milliseconds(16'200);
  serve_from({"r1"});
  ask(kUnary);
  engine_dies();
  EXPECT_EQ(reply_.header("retry-after"), "17");
}

TEST_F(VerdictsTest, SuspectsWhatWasAboardAlsoInTheMiddleOfAStream) {
  ask(kStream);
  call().chunk("data: a\n\n");
  engine_dies();
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(*suspects_.suspicion(fingerprint(kStream), clock_.wall_now()), Suspicion::kSuspect);
  EXPECT_TRUE(is_down("r1"));
}

TEST_F(VerdictsTest, KnowsALargeRequestByItsFingerprintAlone) {
  const std::string large = R"({"model":"mini","stream":true,"messages":[{}],"user":")" +
                            std::string(100'000, 'x') + "\"}";
  ask(large);
  ASSERT_TRUE(loop_.run_until([this] { return !upstream_.calls.empty(); }));
  call().chunk("data: a\n\n");
  engine_dies();
  ASSERT_TRUE(loop_.run_until([this] { return done_; }));
  EXPECT_EQ(*suspects_.suspicion(fingerprint(large), clock_.wall_now()), Suspicion::kSuspect);
}

TEST_F(VerdictsTest, RefusesARequestUnderWhichTwoEnginesDied) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  engine_dies();
  ask_again(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_NE(call(1).replica, call(0).replica);
  engine_dies(1);
  pass(seconds(30));
  ask_again(kUnary);
  EXPECT_EQ(upstream_.calls.size(), 2U) << "two engines at most";
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_NE(reply_.text.find("\"quarantined\""), std::string::npos);
  EXPECT_NE(reply_.text.find(fingerprint(kUnary).hex()), std::string::npos);
  EXPECT_EQ(reply_.header("x-should-retry"), "false");
  ask_again(R"({"model":"mini","messages":[{"other":1}]})");
  EXPECT_EQ(upstream_.calls.size(), 3U) << "others are not affected";
}

TEST_F(VerdictsTest, RunsASuspectWhereNoOtherOneDoesAndOnlyOnce) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  engine_dies();
  const auto other = fingerprint("other");
  suspects_.died({.fingerprint = other,
                  .deployment = "mini",
                  .deployment_uid = "",
                  .path = "/p",
                  .deaths = {{"r9"}},
                  .until = {}},
                 clock_.wall_now());
  pass(seconds(2));
  auto aboard = suspects_.board(other, "r2", clock_.steady_now());
  ask_again(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1") << "another suspect runs on the other";
  EXPECT_FALSE(suspects_.board(fingerprint(kUnary), "r3", clock_.steady_now()))
      << "never on two engines at once";
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_FALSE(suspects_.occupied("r1"));
  EXPECT_EQ(*suspects_.suspicion(fingerprint(kUnary), clock_.wall_now()), Suspicion::kClear)
      << "it was answered";
}

TEST_F(VerdictsTest, LetsASuspectWaitWhereOthersRunEverywhereAndSendsItAwayInTheEnd) {
  ask(kUnary);
  engine_dies();
  pass(seconds(2));
  auto aboard = suspects_.board(fingerprint("other"), "r1", clock_.steady_now());
  ask_again(kUnary);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(done_, i >= 10) << i;
    pass(seconds(1));
  }
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_EQ(reply_.header("retry-after"), "10") << "the other one has run for as long";
  EXPECT_EQ(reply_.header("x-should-retry"), "true");
}

TEST_F(VerdictsTest, TakesTheLossOfOneReplicaForChanceAndOfTwoForTheRequestsDoing) {
  serve_from({"r1", "r2", "r3"});
  ask(kUnary);
  call(0).lose(Source::kLost);
  EXPECT_TRUE(suspects_.empty());
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).lose(Source::kLost);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(*suspects_.suspicion(fingerprint(kUnary), clock_.wall_now()), Suspicion::kSuspect);
  for (const bool is_last : {false, true}) {
    pass(seconds(60));
    ask_again(kUnary);
    upstream_.calls.back()->lose(Source::kLost);
    EXPECT_EQ(suspects_.suspicion(fingerprint(kUnary), clock_.wall_now()).has_value(), !is_last);
  }
}

TEST_F(VerdictsTest, TriesElsewhereWhatTheEngineThatDiedNeverHad) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  call().fail(503, "engine_killed", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(is_down(call(0).replica));
  call(1).fail(503, "engine_killed", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  EXPECT_TRUE(done_);
  EXPECT_NE(reply_.text.find("\"engine_dead\""), std::string::npos) << reply_.text;
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(VerdictsTest, QuarantinesNoRequestThatIsAnsweredBetweenKills) {
  for (int i = 0; i < 6; ++i) {
    serve_from({"r" + std::to_string(i)});
    upstream_.calls.clear();
    done_ = true;
    ask_again(kUnary);
    engine_dies(0, "engine_killed");
    EXPECT_EQ(*suspects_.suspicion(fingerprint(kUnary), clock_.wall_now()), Suspicion::kSuspect);
    pass(seconds(20));
    serve_from({"s" + std::to_string(i)});
    ask_again(kUnary);
    call(1).content_type = "application/json";
    call(1).chunk("{}");
    call(1).finish();
    EXPECT_EQ(reply_.status, 200U);
    EXPECT_EQ(*suspects_.suspicion(fingerprint(kUnary), clock_.wall_now()), Suspicion::kClear);
    pass(seconds(20));
  }
}

TEST_F(VerdictsTest, ClearsARequestByTheAnswerThatHadBegunWhenTheEngineDied) {
  serve_from({"r1", "r2"});
  FakeReply second;
  ask(kStream);
  ask_as(second, kStream);
  call(1).chunk("data: a\n\n");
  pass(milliseconds(100));
  engine_dies(0);
  EXPECT_EQ(*suspects_.suspicion(fingerprint(kStream), clock_.wall_now()), Suspicion::kSuspect);
  call(1).chunk("data: [DONE]\n\n");
  call(1).finish();
  EXPECT_EQ(*suspects_.suspicion(fingerprint(kStream), clock_.wall_now()), Suspicion::kClear);
}

TEST_F(VerdictsTest, GivesAWaitingSuspectThePlaceThatBecomesFree) {
  ask(kUnary);
  engine_dies();
  pass(seconds(2));
  auto aboard = suspects_.board(fingerprint("other"), "r1", clock_.steady_now());
  ask_again(kUnary);
  pass(seconds(1));
  aboard.reset();
  pass(seconds(1));
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(suspects_.occupied("r1"));
}

TEST_F(VerdictsTest, CountsAWaitingSuspectOnceAsInFlight) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  die_elsewhere({{"r9"}});
  auto elsewhere = suspects_.board(fingerprint(kUnary), "r9", clock_.steady_now());
  pass(seconds(1));
  EXPECT_EQ(totals().in_flight, 1U) << "it has been called back and waits";
  elsewhere.reset();
  pass(seconds(1));
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(totals().in_flight, 1U);
}

TEST_F(VerdictsTest, JudgesARequestAgainBeforeItsNextAttempt) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  die_elsewhere({{"r8"}, {"r9"}});
  call().lose(Source::kUnreachable);
  EXPECT_EQ(upstream_.calls.size(), 1U) << "it is quarantined by now";
  EXPECT_EQ(reply_.status, 400U);
}

TEST_F(VerdictsTest, TriesTheReplicasOfTheMomentAfterAFailure) {
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{");
  serve_from({"r1", "r2"});
  call().lose(Source::kLost);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r2");
}

TEST_F(VerdictsTest, EjectsAReplicaThatFailsFast) {
  serve_from({"r1", "r2"});
  for (int i = 0; i < 12; ++i) {
    done_ = false;
    ask(kUnary);
    auto& opened = *upstream_.calls.back();
    if (opened.replica == "r1") {
      opened.fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
    } else {
      opened.content_type = "application/json";
      opened.chunk("{}");
      opened.finish();
    }
  }
  const auto at_r1 = std::count_if(upstream_.calls.begin(), upstream_.calls.end(),
                                   [](const auto& opened) { return opened->replica == "r1"; });
  EXPECT_EQ(at_r1, 3);
  EXPECT_TRUE(is_down("r1"));
}

TEST_F(VerdictsTest, NeverEjectsTheLastReplicaForItsAnswers) {
  for (int i = 0; i < 5; ++i) {
    done_ = false;
    ask(kUnary);
    upstream_.calls.back()->fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  }
  EXPECT_FALSE(is_down("r1"));
}

TEST_F(VerdictsTest, CountsAMissedDeadlineAgainstTheReplica) {
  limits_.first_event_deadline = milliseconds(500);
  serve_from({"r1", "r2"});
  for (int i = 0; i < 6; ++i) {
    done_ = false;
    ask(kUnary);
    pass(seconds(1));
    EXPECT_TRUE(done_);
  }
  EXPECT_TRUE(is_down("r1") || is_down("r2"));
}

TEST_F(VerdictsTest, TellsADeadEndFromATimeToWait) {
  availability_ = base::Availability::kScaledToZero;
  serve_from({});
  ask(kUnary);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_NE(reply_.text.find("scaled to 0"), std::string::npos);
  EXPECT_EQ(reply_.header("x-should-retry"), "false");
  EXPECT_EQ(reply_.header("retry-after"), "");
  availability_ = base::Availability::kFailed;
  serve_from({});
  ask_again(kUnary);
  EXPECT_NE(reply_.text.find("the test wants it so"), std::string::npos);
  EXPECT_EQ(reply_.header("x-should-retry"), "false");
  availability_ = base::Availability::kLoading;
  expected_ready_at_ = clock_.wall_now() + seconds(16);
  serve_from({});
  ask_again(kUnary);
  EXPECT_NE(reply_.text.find("model_loading"), std::string::npos);
  EXPECT_EQ(reply_.header("retry-after"), "16");
  EXPECT_EQ(reply_.header("x-should-retry"), "true");
}

}  // namespace
}  // namespace penstock::proxy
