// What failures mean for replicas, requests and clients.
#include "base/trace_context.h"
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

using admission::Standing;

class VerdictsTest : public RequestFlowTest {
 protected:
  void engine_dies(size_t i = 0, const std::string& code = "engine_dead") {
    call(i).fail(503, code, v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  }
  // A client of its own for each request, as far as the flow can tell.
  void ask_again(const std::string& body) {
    EXPECT_TRUE(done_);
    done_ = false;
    reply_.text.clear();
    reply_.status = 0;
    ask(body);
  }
  admission::Fingerprint fingerprint(const std::string& body) {
    return admission::fingerprint_of("", "/v1/chat/completions", body);
  }
};

TEST_F(VerdictsTest, GivesTheReplicaNoTraceThatIsNone) {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  ask(kUnary, good);
  EXPECT_EQ(call().request.traceparent(), good);
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  done_ = false;
  ask(kUnary, "\xff");
  EXPECT_TRUE(base::is_trace_parent(call(1).request.traceparent()));
  v1::CallRequest read;
  EXPECT_TRUE(read.ParseFromString(call(1).request.SerializeAsString()));
}

TEST_F(VerdictsTest, CarriesNoRequestOnWhoseEngineDied) {
  for (const std::string& code : {std::string("engine_dead"), std::string("engine_hung")}) {
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
  EXPECT_EQ(*suspects_.judge(fingerprint(kStream), clock_.wall_now()), Standing::kSuspect);
  EXPECT_TRUE(tracker().is_down(clock_.steady_now()));
}

TEST_F(VerdictsTest, KnowsALargeRequestByItsFingerprintAlone) {
  const std::string large = R"({"model":"mini","stream":true,"messages":[{}],"user":")" +
                            std::string(100'000, 'x') + "\"}";
  ask(large);
  call().chunk("data: a\n\n");
  engine_dies();
  EXPECT_EQ(*suspects_.judge(fingerprint(large), clock_.wall_now()), Standing::kSuspect);
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
                  .deaths = {},
                  .until = {}},
                 {"r9"}, clock_.wall_now());
  pass(seconds(2));
  auto aboard = suspects_.board(other, "r2");
  ask_again(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1") << "another suspect runs on the other";
  EXPECT_EQ(suspects_.judge(fingerprint(kUnary), clock_.wall_now()).error().status, 503U)
      << "never on two engines at once";
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_FALSE(suspects_.occupied("r1"));
  EXPECT_EQ(*suspects_.judge(fingerprint(kUnary), clock_.wall_now()), Standing::kClear)
      << "it was answered";
}

TEST_F(VerdictsTest, LetsASuspectWaitOutsideWhereOthersRunEverywhere) {
  ask(kUnary);
  engine_dies();
  pass(seconds(2));
  auto aboard = suspects_.board(fingerprint("other"), "r1");
  ask_again(kUnary);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_EQ(reply_.header("retry-after"), "1");
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
  EXPECT_EQ(suspects_.judge(fingerprint(kUnary), clock_.wall_now()).error().code, "quarantined");
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
  EXPECT_TRUE(tracker(0).is_down(clock_.steady_now()));
}

TEST_F(VerdictsTest, NeverEjectsTheLastReplicaForItsAnswers) {
  for (int i = 0; i < 5; ++i) {
    done_ = false;
    ask(kUnary);
    upstream_.calls.back()->fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  }
  EXPECT_FALSE(tracker().is_down(clock_.steady_now()));
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
  EXPECT_TRUE(tracker(0).is_down(clock_.steady_now()) || tracker(1).is_down(clock_.steady_now()));
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
