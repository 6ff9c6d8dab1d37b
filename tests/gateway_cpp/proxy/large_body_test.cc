// Large bodies: read and hashed beside the I/O thread, held once.
#include <future>

#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class LargeBodyTest : public RequestFlowTest {
 protected:
  static std::string large(const std::string& rest) {
    return R"({"model":"mini","messages":[{}],"x":[)" + std::string(80'000, '1') + "]" + rest + "}";
  }
  // From here on the side thread is busy until go_on().
  void hold_aside() {
    aside_.add(0, [gate = gate_.get_future().share()] { gate.wait(); });
  }
  void go_on() { gate_.set_value(); }

  void ask_from(runtime::BodyBudget& budget, const std::string& body) {
    Ask ask;
    ask.endpoint = openai::find_endpoint("/v1/chat/completions");
    ask.body = body;
    ask.share = runtime::BodyShare(budget);
    ASSERT_TRUE(ask.share.grow_to(body.size()));
    ask.received = clock_.steady_now();
    ask.caller = caller();
    loop_.spawn(run(std::move(ask)));
    loop_.poll();
  }

  bool finished() {
    return loop_.run_until([this] { return done_; });
  }
  bool opened(size_t calls) {
    return loop_.run_until([this, calls] { return upstream_.calls.size() == calls; });
  }

 private:
  std::promise<void> gate_;
};

TEST_F(LargeBodyTest, ReadsOneBesideTheLoopAndSendsItWhole) {
  const std::string body = large(R"(,"stream":true)");
  hold_aside();
  ask(body);
  EXPECT_TRUE(upstream_.calls.empty()) << "others of this thread have their turn";
  go_on();
  ASSERT_TRUE(opened(1));
  EXPECT_EQ(call().request.body(), body);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  EXPECT_TRUE(done_);
}

TEST_F(LargeBodyTest, RefusesOneThatIsNoJson) {
  ask(large("") + "}");
  ASSERT_TRUE(finished());
  EXPECT_EQ(reply_.status, 400U);
}

TEST_F(LargeBodyTest, EndsAtOnceWhenItsClientLeavesMeanwhile) {
  hold_aside();
  ask(large(""));
  reply_.leave();
  EXPECT_TRUE(done_);
  go_on();
  EXPECT_TRUE(upstream_.calls.empty());
}

TEST_F(LargeBodyTest, EndsAtOnceWhenTheGatewayEndsMeanwhile) {
  hold_aside();
  ask(large(""));
  reply_.end_gateway();
  EXPECT_TRUE(done_);
  go_on();
  EXPECT_EQ(reply_.status, 503U);
}

TEST_F(LargeBodyTest, GoesToTheNextReplicaWithTheSameBytes) {
  serve_from({"r1", "r2"});
  const std::string body = large("");
  ask(body);
  ASSERT_TRUE(opened(1));
  call().lose(Source::kLost);
  ASSERT_TRUE(opened(2));
  EXPECT_EQ(call(1).request.body(), body);
}

TEST_F(LargeBodyTest, GivesItsShareBackWhenItsClientLeavesBeforeItIsRead) {
  runtime::BodyBudget budget(100'000);
  hold_aside();
  ask_from(budget, large(""));
  EXPECT_FALSE(budget.take(50'000));
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(budget.take(100'000)) << "the side thread is busy with others' for long";
  go_on();
}

TEST_F(LargeBodyTest, EndsWithTheGatewayWhileItsFingerprintIsWaitedFor) {
  ask(large(R"(,"stream":true)"));
  ASSERT_TRUE(opened(1));
  hold_aside();
  call().chunk("data: a\n\n");
  call().fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_FALSE(done_);
  reply_.end_gateway();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(suspects_.empty());
  go_on();
}

TEST_F(LargeBodyTest, GivesItsShareBackWhenTheAnswerHasBegun) {
  runtime::BodyBudget budget(100'000);
  ask_from(budget, large(R"(,"stream":true)"));
  ASSERT_TRUE(opened(1));
  EXPECT_FALSE(budget.take(50'000));
  call().chunk("data: a\n\n");
  EXPECT_TRUE(loop_.run_until([&budget] { return budget.take(100'000); }));
  reply_.leave();
}

TEST_F(LargeBodyTest, RefusesAQuarantinedOne) {
  const std::string body = large("");
  suspects_.died({.fingerprint = admission::fingerprint_of("", "/v1/chat/completions", body),
                  .deployment = "mini",
                  .deployment_uid = "",
                  .path = "/p",
                  .deaths = {{"r8"}, {"r9"}},
                  .until = {}},
                 clock_.wall_now());
  ask(body);
  ASSERT_TRUE(finished());
  EXPECT_EQ(reply_.status, 400U);
}

TEST_F(LargeBodyTest, SuspectsItWhenItsEngineDiesBeforeTheFirstByte) {
  const std::string body = large("");
  ask(body);
  ASSERT_TRUE(opened(1));
  call().fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  ASSERT_TRUE(finished());
  EXPECT_EQ(reply_.status, 503U);
  const auto fingerprint = admission::fingerprint_of("", "/v1/chat/completions", body);
  EXPECT_EQ(*suspects_.suspicion(fingerprint, clock_.wall_now()), admission::Suspicion::kSuspect);
}

}  // namespace
}  // namespace penstock::proxy
